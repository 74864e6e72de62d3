// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/support/process.hpp"
#include "tests/support/state_checksum.hpp"
#include "tests/unit/checkpoint/thing.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;
using test::Thing;

TEST_CASE("a checkpoint brings every bit back", "[train]") {
  const test::TempFolder folder;
  Thing saved("saved"), loaded;
  const CheckpointInfo info = save_checkpoint(folder.path(), 12, saved.all());
  CHECK(info.path == folder / "step-00000012.h5");
  CHECK(read_file_whole(folder / "latest") == "step-00000012\n");
  const auto found = find_checkpoint(folder.path());
  REQUIRE(found);
  CHECK(found->step == 12);
  load_checkpoint(found->path, loaded.all());
  CHECK(loaded == saved);
  CHECK(test::state_checksum(loaded.all()) == test::state_checksum(saved.all()));
  loaded.weights[34] = std::nextafter(loaded.weights[34], 9.0f);
  CHECK(test::state_checksum(loaded.all()) != test::state_checksum(saved.all()));
}

TEST_CASE("an empty or missing folder holds no checkpoint", "[train]") {
  const test::TempFolder folder;
  CHECK(!find_checkpoint(folder.path()));
  CHECK(!find_checkpoint(folder / "nowhere"));
}

TEST_CASE("another run's checkpoint may be of another floating-point type and lack states of the optimiser",
          "[train]") {
  const test::TempFolder folder;
  std::vector<double> there = {1.5, -2.25, 1e-3};
  std::vector<float> here(3, 7.0f), moments(3, 7.0f);
  double scale = 1024;
  const auto tensor = [](const char* name, auto& values) {
    return StateTensor{.name = name,
                       .data = values.data(),
                       .dtype = dtype_of<std::decay_t<decltype(values[0])>>,
                       .shape = {3},
                       .global_shape = {3}};
  };
  const std::string path = save_checkpoint(folder.path(), 1, [&](StateVisitor& visitor) {
                             visitor.tensor(tensor("weights/w", there));
                           }).path;
  std::int64_t begin = 0;
  const VisitAll all = [&](StateVisitor& visitor) {
    visitor.tensor(tensor("weights/w", here));
    visitor.tensor(tensor("optimiser/first_moment/w", moments));
    visitor.scalar("loss_scale", scale, Absent::kept_in_other_run);
    visitor.scalar("moments_begin", begin, Absent::kept);
  };
  CHECK_THROWS_AS(load_checkpoint(path, all), DataError);
  load_checkpoint(path, all, true);
  CHECK(here == std::vector<float>{1.5f, -2.25f, 1e-3f});
  CHECK(moments == std::vector<float>(3, 0.0f));
  CHECK(scale == 1024);
  CHECK(begin == 0);
  const VisitAll later = [&](StateVisitor& visitor) { visitor.scalar("moments_begin", begin, Absent::kept); };
  CHECK_NOTHROW(load_checkpoint(path, later));
  const VisitAll scaled = [&](StateVisitor& visitor) { visitor.scalar("s", scale, Absent::kept_in_other_run); };
  CHECK_THROWS_AS(load_checkpoint(path, scaled), DataError);
}

TEST_CASE("tensors of a checkpoint that have another shape, or are missing, are named", "[train]") {
  const test::TempFolder folder;
  Thing saved("saved"), other;
  const std::string path = save_checkpoint(folder.path(), 1, saved.all()).path;
  other.weights_shape = {7, 5};
  CHECK_THROWS_AS(load_checkpoint(path, other.all()), DataError);
  CHECK_THROWS_WITH(load_checkpoint(path, other.all()),
                    Catch::Contains("weights/dense.weight") && Catch::Contains("(5, 7)") && Catch::Contains("(7, 5)"));
  const auto more = [&](StateVisitor& visitor) {
    saved.visit(visitor);
    std::int64_t extra = 0;
    visitor.scalar("extra", extra);
  };
  CHECK_THROWS_AS(load_checkpoint(path, more), DataError);
}

TEST_CASE("a checkpoint that cannot be written leaves the earlier ones and nothing of its own", "[train]") {
  const test::TempFolder folder;
  Thing thing("thing");
  save_checkpoint(folder.path(), 1, thing.all());
  fs::create_directory(folder / "step-00000002.json");  // takes the manifest's place
  std::ofstream(folder / "step-00000002.json/full") << "x";
  CHECK_THROWS_AS(save_checkpoint(folder.path(), 2, thing.all()), EnvironmentError);
  CHECK(!fs::exists(folder / "step-00000002.h5"));
  CHECK(find_checkpoint(folder.path())->step == 1);
  for (const auto& entry : fs::directory_iterator(folder.path()))
    CHECK(entry.path().filename().string().find(".tmp") == std::string::npos);
}

TEST_CASE("until a checkpoint has taken the place of one of its step, that one is good", "[train]") {
  const test::TempFolder folder, aside;
  Thing earlier("earlier"), later("later"), loaded;
  const std::string path = save_checkpoint(folder.path(), 7, earlier.all()).path,
                    manifest = folder / "step-00000007.json";
  const auto is_good = [&](const Thing& thing) {
    const auto found = find_checkpoint(folder.path());
    REQUIRE(found);
    CHECK(damage_of(found->path).empty());
    load_checkpoint(found->path, loaded.all());
    CHECK(loaded == thing);
  };
  save_checkpoint(folder.path(), 7, later.all(), {.before_publish = [&] { is_good(earlier); }});
  is_good(later);
  const SaveOptions failing{.before_publish = [] { throw EnvironmentError("the disk is full"); }};
  CHECK_THROWS_AS(save_checkpoint(folder.path(), 7, earlier.all(), failing), EnvironmentError);
  is_good(later);
  save_checkpoint(folder.path(), 7, earlier.all());
  // The save is killed between its steps: the new manifest is still aside; then the new file is in place too.
  const std::string next = folder / "step-00000007.next.json";
  const std::string new_path = save_checkpoint(aside.path(), 7, later.all()).path;
  for (const bool arrived : {false, true}) {
    CAPTURE(arrived);
    fs::copy_file(manifest_path(new_path), next);
    if (arrived) fs::copy_file(new_path, path, fs::copy_options::overwrite_existing);
    is_good(arrived ? later : earlier);
    settle_manifests(folder.path());
    CHECK(!fs::exists(next));
    is_good(arrived ? later : earlier);
    CHECK((read_file_whole(manifest) == read_file_whole(manifest_path(new_path))) == arrived);
  }
}

TEST_CASE("the best stays beside the newest", "[train]") {
  const test::TempFolder folder;
  Thing thing("thing");
  for (const std::int64_t step : {1, 2, 3, 4, 5}) save_checkpoint(folder.path(), step, thing.all());
  set_best(folder.path(), 2);
  prune_checkpoints(folder.path(), 2, 2);
  for (const std::int64_t step : {1, 2, 3, 4, 5})
    CHECK(fs::exists(checkpoint_path(folder.path(), step)) == (step == 2 || step >= 4));
  CHECK(read_file_whole(folder / "best") == "step-00000002\n");
  CHECK(find_checkpoint(folder.path())->step == 5);
  prune_checkpoints(folder.path(), 2, 5);
  CHECK(!fs::exists(checkpoint_path(folder.path(), 2)));
  CHECK(fs::exists(checkpoint_path(folder.path(), 4)));
  set_best(folder.path(), {});
  CHECK(!fs::exists(folder / "best"));
}

TEST_CASE("the newest are kept, and what does not count goes", "[train]") {
  const test::TempFolder folder;
  Thing thing("thing");
  for (const std::int64_t step : {1, 2, 30, 100000000}) save_checkpoint(folder.path(), step, thing.all());
  std::ofstream(folder / "step-00000003.h5") << "no manifest";
  std::ofstream(folder / "step-00000004.h5.tmp-1-0") << "half";
  std::ofstream(folder / "notes.txt") << "mine";
  prune_checkpoints(folder.path(), 2);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path())) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"latest", "notes.txt", "step-00000030.h5", "step-00000030.json",
                                          "step-100000000.h5", "step-100000000.json"});
}

}  // namespace
}  // namespace echelon
