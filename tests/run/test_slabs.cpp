// SPDX-License-Identifier: Apache-2.0
// Ranks that share volumes read, hold and score their slabs alone, and end with the weights, figures and predictions of
// one rank.
#include <algorithm>
#include <filesystem>
#include <regex>

#include "base/atomic_file.hpp"
#include "tests/run/scenes.hpp"

namespace echelon::test {
namespace {

using Catch::Contains;
using nlohmann::json;

constexpr std::int64_t kFiles = 8, kRows = 4, kColumns = 6;

constexpr const char* kSegments = R"(name = "trial"
seed = 3
[model]
zoo = "unet"
widths = [3, 4]
ignore_label = 255
class_weights = [0.25, 1, 3]
[data]
train = "train/*.h5"
test = "test/*.h5"
sharding = "record"
[data.hdf5]
samples = "volume"
axes = "DHWC"
labels = "segmentation"
label_form = "dense"
classes = 3
[batch]
global = 4
[train]
epochs = 0
steps = 3
[evaluate]
metrics = ["mean_iou", "class_iou", "confusion"]
[optimizer]
learning_rate = 0.05
momentum = 0.9
[device]
kind = "reference"
dtype = "f64"
)";

constexpr const char* kCosmos = R"(name = "trial"
seed = 3
[model]
zoo = "cosmoflow"
widths = [3, 4]
[data]
train = "train/*.h5"
sharding = "record"
shuffle = false
[data.hdf5]
samples = "volume"
axes = "DHWC"
labels = "parameters"
label_form = "values"
[batch]
global = 4
[train]
epochs = 0
steps = 3
[optimizer]
learning_rate = 0.01
[device]
kind = "reference"
dtype = "f64"
)";

// One volume a file, channels last. The last slices have no class, so that slabs differ in how many labels count.
void write_volumes(const Trial& trial, const std::string& folder, std::int64_t files, std::int64_t slices) {
  std::filesystem::create_directories(trial / folder);
  for (std::int64_t i = 0; i < files; ++i) {
    const HashRng draws(static_cast<std::uint64_t>(i), folder);
    std::vector<float> values, parameters;
    std::vector<std::uint8_t> classes;
    for (std::int64_t v = 0; v < slices * kRows * kColumns; ++v) {
      const double value = draws.uniform(static_cast<std::uint64_t>(v));
      values.insert(values.end(), {static_cast<float>(2 * value - 1), static_cast<float>(value)});
      const bool unknown = v / (kRows * kColumns) > 10 - i % 3;
      classes.push_back(unknown ? 255 : value < 0.7 ? 0 : value < 0.9 ? 1 : 2);
    }
    for (std::uint64_t p = 0; p < 4; ++p) parameters.push_back(static_cast<float>(draws.uniform(1000 + p) - 0.5));
    h5::Writer file(trial / fmt::format("{}/{}.h5", folder, i));
    file.write_all("volume", DType::f32, {slices, kRows, kColumns, 2}, values.data());
    file.write_all("segmentation", DType::u8, {slices, kRows, kColumns}, classes.data());
    file.write_all("parameters", DType::f32, {4}, parameters.data());
    file.publish();
  }
}

// The memory of the rank that takes most, in MiB, as `check` prints it: of the unsplit model, or in the table of ranks.
double predicted_mb(const std::string& out, bool split) {
  static const std::regex unsplit(R"(\nmemory +([0-9.]+) (KiB|MiB))"),
      rank(R"(\n +[0-9]+ .* ([0-9.]+) (KiB|MiB)(?=\n))");
  double most = 0;
  const std::regex& line = split ? rank : unsplit;
  for (std::sregex_iterator found(out.begin(), out.end(), line), end; found != end; ++found)
    most = std::max(most, std::stod((*found)[1]) / ((*found)[2] == "KiB" ? 1024 : 1));
  return most;
}

Sets spaced(int spatial_shards) { return {fmt::format("parallel.space={}", spatial_shards)}; }

}  // namespace

TEST_CASE("slabs of volumes with a class for every voxel: weights, figures and predictions of one rank",
          "[slabs][equality]") {
  const Trial trial(kSegments);
  write_volumes(trial, "train", kFiles, 14);
  write_volumes(trial, "test", 3, 14);
  const Sets together = {"model.synchronised_batch_norm=true"};
  const std::vector<double> one = weights_of(trial, "one", 0, together);
  const json figures = trial.summary("one");
  REQUIRE(trial.echelon({"predict", trial.run("one"), "test/*.h5", "--out", "one.h5", "--outputs"}).code == 0);
  const h5::Reader whole(trial / "one.h5");
  std::vector<float> expected(static_cast<std::size_t>(whole.info("outputs").shape.elems())), found(expected.size());
  whole.read_all("outputs", expected.data(), DType::f32);
  for (const auto& [ranks, space] : {std::pair(2, 2), std::pair(3, 3), std::pair(4, 4), std::pair(4, 2)}) {
    const std::string name = fmt::format("s{}-k{}", space, ranks / space);
    CAPTURE(name);
    CHECK(distance(weights_of(trial, name, ranks, with(together, spaced(space))), one) <= 1e-9);
    const json row = trial.summary(name);
    for (const char* figure : {"test_loss", "test_accuracy", "test_mean_iou", "test_iou", "train_loss"}) {
      CAPTURE(figure);
      if (row[figure].is_array())
        CHECK(row[figure] == figures[figure]);
      else
        CHECK(row[figure].get<double>() == Approx(figures[figure].get<double>()).epsilon(1e-9));
    }
    CHECK(read_file_whole(trial.attempt(name) + "/classes.csv") ==
          read_file_whole(trial.attempt("one") + "/classes.csv"));
    REQUIRE(trial.echelon({"predict", trial.run(name), "test/*.h5", "--out", name + ".h5", "--outputs"}).code == 0);
    const h5::Reader own(trial / (name + ".h5"));
    own.read_all("outputs", found.data(), DType::f32);
    for (std::size_t i = 0; i < found.size(); ++i) REQUIRE(found[i] == Approx(expected[i]).margin(1e-6));
  }
  // A run that was split goes on whole, and the other way round.
  (void)weights_of(trial, "again", 2, with(together, {"parallel.space=2", "train.steps=1"}));
  CHECK(distance(weights_of(trial, "again", 0, together), one) <= 1e-9);
  (void)weights_of(trial, "divided", 0, with(together, {"train.steps=2"}));
  CHECK(distance(weights_of(trial, "divided", 3, with(together, spaced(3))), one) <= 1e-9);
}

TEST_CASE("slabs of volumes: what ranks read falls with their number", "[slabs]") {
  const Trial trial(kCosmos);
  constexpr std::int64_t kSlices = 17;
  write_volumes(trial, "train", kFiles, kSlices);
  const std::vector<double> one = weights_of(trial, "one", 0, {});
  const double alone = trial.summary("one")["bytes_read"];
  for (const auto& [ranks, space] : {std::pair(2, 2), std::pair(3, 3), std::pair(4, 4), std::pair(4, 2)}) {
    const std::string name = fmt::format("s{}-k{}", space, ranks / space);
    CAPTURE(name);
    CHECK(distance(weights_of(trial, name, ranks, spaced(space)), one) <= 1e-9);
    // The sum over all ranks: each slice once, and those beside a cut twice.
    const double together = trial.summary(name)["bytes_read"], slices = 1.0 / kSlices;
    CHECK(together >= alone * (1 + 1.9 * (space - 1) * slices));
    CHECK(together <= alone * (1 + 2.1 * (space - 1) * slices));
  }
  const Outcome changed = trial.check({"parallel.space=2", "data.augment.flip_depth=true"}, {"--ranks", "2"});
  CHECK(changed.code == 0);
  CHECK_THAT(changed.out + changed.err, Contains("every rank of a group reads whole samples"));
}

TEST_CASE("slabs of volumes: memory is as predicted, and falls so that what one rank refuses trains on four",
          "[slabs]") {
  const Trial trial(kSegments);
  write_volumes(trial, "train", 4, 256);
  write_volumes(trial, "test", 4, 256);
  const Sets fast = {"device.kind=onednn", "device.dtype=f32", "device.threads=1", "model.widths=[6, 8]",
                     "train.steps=2"};
  double alone = 0;
  for (const int space : {1, 2, 4}) {
    const Sets sets = with(fast, with(spaced(space), {fmt::format("name=m{}", space)}));
    const Outcome plan = trial.check(sets, {"--ranks", std::to_string(space)});
    const Outcome run = trial.train(space, sets);
    INFO(plan.out << run.out << run.err);
    REQUIRE(run.code == 0);
    const std::vector<double> held = trial.summary(fmt::format("m{}", space))["device_peak_mb"];
    const double most = *std::max_element(held.begin(), held.end());
    CHECK(predicted_mb(plan.out, space > 1) == Approx(most).epsilon(0.1));
    if (space == 1) alone = most;
    INFO("space " << space << ": " << most << " of " << alone << " MB");
    CHECK(most <= alone * (0.2 + 1.0 / space));  // weights, halos and packed copies do not fall
  }
  const Sets little = with(fast, {"name=little", fmt::format("device.memory_limit_mb={:.3f}", 0.4 * alone)});
  CHECK(trial.train(0, with(little, {"run.restart=never"})).code == 6);
  CHECK(trial.check(with(little, spaced(2)), {"--ranks", "2"}).code == 6);
  CHECK(trial.train(4, with(little, spaced(4))).code == 0);
}

}  // namespace echelon::test
