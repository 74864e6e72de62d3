#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "checkpoint/checkpoint.hpp"
#include "tests/support/process.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;

// Something with state of every type that a checkpoint takes.
struct Thing {
  std::vector<float> weights;
  std::vector<double> momentum;
  std::vector<std::int32_t> counts;
  std::int64_t step = 0;
  double loss = 0;
  Shape weights_shape = {5, 7};

  explicit Thing(std::string_view name = "") : weights(35), momentum(11), counts(3) {
    if (name.empty()) return;
    const auto random = test::random_values(46, name);
    for (std::size_t i = 0; i < 35; ++i) weights[i] = static_cast<float>(random[i]);
    for (std::size_t i = 0; i < 11; ++i) momentum[i] = random[35 + i];
    counts = {3, -1, 1 << 30};
    step = 1234567890123;
    loss = random[0] / 3;
  }

  void visit(StateVisitor& visitor) {
    const auto show = [&](const char* name, auto& values, const Shape& shape) {
      StateTensor tensor;
      tensor.name = name;
      tensor.data = values.data();
      tensor.dtype = dtype_of<std::decay_t<decltype(values[0])>>;
      tensor.shape = tensor.global_shape = shape;
      visitor.tensor(tensor);
    };
    show("weights/dense.weight", weights, weights_shape);
    show("optimiser/velocity/dense.weight", momentum, {11});
    show("counts", counts, {3});
    visitor.scalar("step", step);
    visitor.scalar("loss", loss);
  }
  VisitAll all() {
    return [this](StateVisitor& visitor) { visit(visitor); };
  }
  friend bool operator==(const Thing& a, const Thing& b) {
    return a.weights == b.weights && a.momentum == b.momentum && a.counts == b.counts && a.step == b.step &&
           a.loss == b.loss;
  }
};

void damage(const std::string& path, const std::function<void(std::string&)>& how) {
  std::string bytes = read_file_whole(path);
  how(bytes);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

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
  CHECK(state_checksum(loaded.all()) == state_checksum(saved.all()));
  loaded.weights[34] = std::nextafter(loaded.weights[34], 9.0f);
  CHECK(state_checksum(loaded.all()) != state_checksum(saved.all()));
}

TEST_CASE("an empty or missing folder holds no checkpoint", "[train]") {
  const test::TempFolder folder;
  CHECK(!find_checkpoint(folder.path()));
  CHECK(!find_checkpoint(folder / "nowhere"));
}

TEST_CASE("a damaged newest checkpoint is passed over for the one before", "[train]") {
  const test::TempFolder folder;
  Thing thing("thing");
  save_checkpoint(folder.path(), 10, thing.all());
  thing.weights[3] += 1;
  save_checkpoint(folder.path(), 20, thing.all());
  const std::string newest = folder / "step-00000020";
  REQUIRE(find_checkpoint(folder.path())->step == 20);

  SECTION("one bit of a weight") {
    damage(newest + ".h5", [&](std::string& bytes) {
      std::string pattern(sizeof(float) * 35, '\0');
      std::memcpy(pattern.data(), thing.weights.data(), pattern.size());
      const auto at = bytes.find(pattern);
      REQUIRE(at != std::string::npos);
      bytes[at + 50] = static_cast<char>(bytes[at + 50] ^ 1);
    });
  }
  SECTION("truncated") {
    damage(newest + ".h5", [](std::string& bytes) { bytes.resize(bytes.size() / 2); });
  }
  SECTION("empty") {
    damage(newest + ".h5", [](std::string& bytes) { bytes.clear(); });
  }
  SECTION("no HDF5 at all") {
    damage(newest + ".h5", [](std::string& bytes) { bytes = "hello"; });
  }
  SECTION("gone") { fs::remove(newest + ".h5"); }
  SECTION("a manifest that is cut off") {
    damage(newest + ".json", [](std::string& bytes) { bytes.resize(bytes.size() / 2); });
  }
  SECTION("a manifest of another step") {
    fs::copy_file(folder / "step-00000010.json", newest + ".json", fs::copy_options::overwrite_existing);
    fs::copy_file(folder / "step-00000010.h5", newest + ".h5", fs::copy_options::overwrite_existing);
  }
  SECTION("no manifest") { fs::remove(newest + ".json"); }
  const auto found = find_checkpoint(folder.path());
  REQUIRE(found);
  CHECK(found->step == 10);
}

// HDF5 must not see such a file: bits of its structure can make the library crash or hang.
TEST_CASE("one flipped bit anywhere in a checkpoint's file is found before HDF5 opens it", "[train]") {
  const test::TempFolder folder;
  const HashRng draws(test::test_seed(), "bits");
  const std::string path = save_checkpoint(folder.path(), 10, Thing("thing").all(), {}, "{\"mean\": [0.5]}").path;
  const std::string good = read_file_whole(path);
  REQUIRE(damage_of(path).empty());
  std::int64_t missed = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    const auto flipped = static_cast<char>(good[at] ^ (1 << draws.below(at, 8)));
    file.seekp(static_cast<std::streamoff>(at)).put(flipped).flush();
    missed += damage_of(path) != "the file does not have the checksum of its manifest";
    file.seekp(static_cast<std::streamoff>(at)).put(good[at]);
  }
  CHECK(good.size() > 2000);
  CHECK(missed == 0);
  CHECK(damage_of(path).empty());
}

TEST_CASE("a flipped bit in a manifest never makes another checkpoint of it", "[train]") {
  const test::TempFolder folder;
  Thing thing("thing"), loaded;
  const std::string path = save_checkpoint(folder.path(), 20, thing.all()).path;
  const std::string manifest = manifest_path(path), good = read_file_whole(manifest);
  const HashRng draws(test::test_seed(), "bits");
  for (std::size_t at = 0; at < good.size(); at += 1 + draws.below(at, 3)) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << draws.at(1).below(at, 8)));
    std::ofstream(manifest, std::ios::binary | std::ios::trunc) << flipped;
    if (damage_of(path).empty()) load_checkpoint(path, loaded.all());  // in a dtype's name, say, or in a blank
  }
  CHECK((loaded == thing || loaded == Thing()));
}

TEST_CASE("a checkpoint file that was given by name is verified like one that was found", "[train]") {
  const test::TempFolder folder;
  Thing thing("thing");
  const std::string path = save_checkpoint(folder.path(), 20, thing.all()).path;
  CHECK_NOTHROW(require_good(path));
  damage(path, [](std::string& bytes) { bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4); });
  CHECK_THROWS_AS(require_good(path), DataError);
  CHECK_THROWS_WITH(require_good(path), Catch::Contains(path) && Catch::Contains("checksum"));
  fs::remove(manifest_path(path));
  CHECK_THROWS_WITH(require_good(path), Catch::Contains("step-00000020.json is missing"));
}

TEST_CASE("damaged checkpoints are set aside and never count against good ones", "[train]") {
  const test::TempFolder folder;
  Thing thing("thing");
  for (const std::int64_t step : {10, 30, 40}) save_checkpoint(folder.path(), step, thing.all());
  for (const char* name : {"step-00000030.h5", "step-00000040.h5"})
    damage(folder / name, [](std::string& bytes) { bytes.resize(bytes.size() / 2); });
  std::vector<std::int64_t> damaged;
  const auto found = find_checkpoint(folder.path(), &damaged);
  REQUIRE(found);
  CHECK(damaged == std::vector<std::int64_t>{40, 30});
  CHECK(glance_at_newest(folder.path())->step == 10);

  SECTION("as a run that resumes does") {
    set_damaged_aside(folder.path(), damaged, folder / "aside", found);
    CHECK(fs::exists(folder / "aside/step-00000040.h5"));
    CHECK(fs::exists(folder / "aside/step-00000030.json"));
    CHECK(read_file_whole(folder / "latest") == "step-00000010\n");
    save_checkpoint(folder.path(), 20, thing.all());
  }
  SECTION("even where they were left") { save_checkpoint(folder.path(), 20, thing.all()); }
  prune_checkpoints(folder.path(), 2);
  damaged.clear();
  CHECK(find_checkpoint(folder.path(), &damaged)->step == 20);
  CHECK(damaged.empty());
  CHECK(fs::exists(folder / "step-00000010.h5"));
  CHECK(!fs::exists(folder / "step-00000040.h5"));
}

TEST_CASE("where every checkpoint is damaged none is left to be found, and none is lost", "[train]") {
  const test::TempFolder folder;
  Thing thing("thing");
  save_checkpoint(folder.path(), 10, thing.all());
  fs::resize_file(folder / "step-00000010.h5", 5);
  std::vector<std::int64_t> damaged;
  CHECK(!find_checkpoint(folder.path(), &damaged));
  set_damaged_aside(folder.path(), damaged, folder / "aside", {});
  CHECK(fs::exists(folder / "aside/step-00000010.h5"));
  CHECK(!fs::exists(folder / "latest"));
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
    visitor.scalar("loss_scale", scale);
    visitor.scalar("moments_begin", begin);  // which checkpoints of older versions lack
  };
  CHECK_THROWS_AS(load_checkpoint(path, all), DataError);
  load_checkpoint(path, all, true);
  CHECK(here == std::vector<float>{1.5f, -2.25f, 1e-3f});
  CHECK(moments == std::vector<float>(3, 0.0f));
  CHECK(scale == 1024);
  CHECK(begin == 0);
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
  fs::create_directory(folder / "step-00000002.json");  // in the way of the manifest
  std::ofstream(folder / "step-00000002.json/full") << "x";
  CHECK_THROWS_AS(save_checkpoint(folder.path(), 2, thing.all()), EnvironmentError);
  CHECK(!fs::exists(folder / "step-00000002.h5"));
  CHECK(find_checkpoint(folder.path())->step == 1);
  for (const auto& entry : fs::directory_iterator(folder.path()))
    CHECK(entry.path().filename().string().find(".tmp") == std::string::npos);
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
