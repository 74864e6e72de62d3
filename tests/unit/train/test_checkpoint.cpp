#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/support/process.hpp"
#include "tests/support/random.hpp"
#include "train/checkpoint.hpp"

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
  SECTION("cut short") {
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
  SECTION("no manifest") { fs::remove(newest + ".json"); }
  const auto found = find_checkpoint(folder.path());
  REQUIRE(found);
  CHECK(found->step == 10);
}

TEST_CASE("what does not fit is named", "[train]") {
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
