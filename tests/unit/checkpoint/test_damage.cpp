// SPDX-License-Identifier: Apache-2.0
// Damaged checkpoints are found, named, skipped, and set aside.
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "tests/support/process.hpp"
#include "tests/unit/checkpoint/thing.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;
using test::Thing;

void damage(const std::string& path, const std::function<void(std::string&)>& how) {
  std::string bytes = read_file_whole(path);
  how(bytes);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
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

// HDF5 must not open such a file: flipped bits of its structure can make the library crash or hang.
TEST_CASE("one flipped bit anywhere in a checkpoint's file is found before HDF5 opens it", "[train]") {
  const test::TempFolder folder;
  const HashRng draws(test::test_seed(), "bits");
  const std::string path =
      save_checkpoint(folder.path(), 10, Thing("thing").all(), {.training_data = "{\"mean\": [0.5]}"}).path;
  const std::string good = read_file_whole(path);
  REQUIRE(damage_of(path).empty());
  std::int64_t missed = 0;
  std::map<std::string, std::size_t> found;
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    const auto flipped = static_cast<char>(good[at] ^ (1 << draws.below(at, 8)));
    file.seekp(static_cast<std::streamoff>(at)).put(flipped).flush();
    const std::string damage = damage_of(path);
    missed += !damage.ends_with("the checksum in the manifest") && !damage.ends_with("the checksum in its manifest");
    ++found[damage.substr(0, damage.rfind('\'') + 1)];
    file.seekp(static_cast<std::streamoff>(at)).put(good[at]);
  }
  CHECK(good.size() > 2000);
  CHECK(missed == 0);
  CHECK(found == std::map<std::string, std::size_t>{{"'weights/dense.weight'", 35 * sizeof(float)},
                                                    {"'optimiser/velocity/dense.weight'", 11 * sizeof(double)},
                                                    {"'counts'", 3 * sizeof(std::int32_t)},
                                                    {"", good.size() - 140 - 88 - 12}});
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
    if (damage_of(path).empty()) load_checkpoint(path, loaded.all());  // it may lie in a dtype's name or in a blank
  }
  CHECK((loaded == thing || loaded == Thing()));
}

TEST_CASE("a checkpoint with one checksum over the whole file, of earlier versions, is verified and read", "[train]") {
  const test::TempFolder folder;
  Thing thing("thing"), loaded;
  const std::string path = save_checkpoint(folder.path(), 20, thing.all()).path;
  auto manifest = nlohmann::ordered_json::parse(read_file_whole(manifest_path(path)));
  manifest["version"] = 2;
  manifest["file"]["checksum64"] = hex64(SummedFile(path).checksum(0, std::filesystem::file_size(path)));
  manifest.erase("structure");
  for (auto& entry : manifest["datasets"]) entry.erase("offset");
  write_file_whole(manifest_path(path), manifest.dump());
  REQUIRE(find_checkpoint(folder.path()));
  load_checkpoint(path, loaded.all());
  CHECK(loaded == thing);
  damage(path, [](std::string& bytes) { bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4); });
  CHECK(damage_of(path) == "the file does not match the checksum in its manifest");
}

TEST_CASE("the manifest has the checksums of values as they were in memory; several damaged tensors are named",
          "[train]") {
  const test::TempFolder folder;
  Thing thing("thing");
  const std::string path = save_checkpoint(folder.path(), 20, thing.all()).path;
  const auto manifest = nlohmann::json::parse(read_file_whole(manifest_path(path)));
  const auto& weights = manifest["datasets"][0];
  CHECK(weights["name"] == "weights/dense.weight");
  CHECK(weights["checksum64"] == hex64(checksum64(thing.weights.data(), sizeof(float) * 35)));
  damage(path, [&](std::string& bytes) {
    for (const auto& entry : manifest["datasets"]) bytes[entry["offset"].get<std::size_t>()] ^= 1;
  });
  CHECK(
      damage_of(path) ==
      "'weights/dense.weight', 'optimiser/velocity/dense.weight', 'counts' do not match the checksum in the manifest");
}

TEST_CASE("what does not read back as it was written is refused before it counts", "[train]") {
  const test::TempFolder folder;
  Thing thing("thing");
  save_checkpoint(folder.path(), 10, thing.all());
  int visits = 0;
  const VisitAll disturbed = [&](StateVisitor& visitor) {
    thing.visit(visitor);
    if (++visits < 2) return;  // the second visit writes the values
    for (const auto& entry : fs::directory_iterator(folder.path()))
      if (entry.path().string().find(".tmp-") != std::string::npos)
        damage(entry.path(), [&](std::string& bytes) {
          std::string pattern(sizeof(double) * 11, '\0');
          std::memcpy(pattern.data(), thing.momentum.data(), pattern.size());
          bytes[bytes.find(pattern) + 80] ^= 16;
        });
  };
  CHECK_THROWS_AS(save_checkpoint(folder.path(), 20, disturbed, {.verify = true}), EnvironmentError);
  visits = 0;
  CHECK_THROWS_WITH(save_checkpoint(folder.path(), 20, disturbed, {.verify = true}),
                    Catch::Contains("step-00000020.h5") && Catch::Contains("'optimiser/velocity/dense.weight'"));
  CHECK(find_checkpoint(folder.path())->step == 10);
  CHECK(!fs::exists(folder / "step-00000020.h5"));
  for (const auto& entry : fs::directory_iterator(folder.path()))
    CHECK(entry.path().filename().string().find(".tmp") == std::string::npos);
  CHECK_NOTHROW(save_checkpoint(folder.path(), 20, thing.all(), {.verify = true}));
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
  std::vector<DamagedCheckpoint> damaged;
  const auto found = find_checkpoint(folder.path(), &damaged);
  REQUIRE(found);
  REQUIRE(damaged.size() == 2);
  CHECK((damaged[0].step == 40 && damaged[1].step == 30));
  CHECK_THAT(damaged[0].text, Catch::StartsWith("step-00000040: the file has "));
  CHECK(glance_at_newest(folder.path())->step == 10);

  SECTION("as a run that resumes does") {
    set_damaged_aside(folder.path(), damaged, folder / "aside", *found);
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

}  // namespace
}  // namespace echelon
