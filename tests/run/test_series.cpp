// SPDX-License-Identifier: Apache-2.0
// Series with a label for each step, from the generated shots to predictions: windows whose states go on, replicas,
// resuming in the middle of a series, memory.
#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "h5/file.hpp"
#include "tests/run/compare.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::check_equal;
using test::train_run;

constexpr const char* kShots = R"(name = "trial"
[model]
zoo = "frnn_lstm"
widths = [5, 4]
loss = "hinge"
[data]
train = "shots/train"
test = "shots/test"
order = "stream"
sequence_length = 24
ragged = "zero_weight"
[batch]
global = 8
[train]
epochs = 2
[optimizer]
rule = "adam"
learning_rate = 0.02
clip_norm = 10
[evaluate]
batch = 3
[device]
kind = "reference"
dtype = "f64"
)";

void make_shots(const test::Trial& trial) {
  trial.make_data(
      {"synth", "--kind", "shots", "--samples", "44", "--hold-out", "7", "--shards", "2", "--out", "shots"});
}

template <class T>
std::vector<T> all_of(const std::string& path, const char* name, DType dtype) {
  const h5::Reader reader(path);
  std::vector<T> values(static_cast<std::size_t>(reader.info(name).shape.elems()));
  reader.read_all(name, values.data(), dtype);
  return values;
}

TEST_CASE("windows of series: k replicas equal one, and a run resumes in the middle of series to the bit", "[run]") {
  const test::Trial trial(kShots);
  make_shots(trial);
  const test::TrainedRun one = train_run(trial, "one", {{1, {}, "streams"}});
  CHECK(one.summary()["test_accuracy"].get<double>() > 0.5);
  for (const int ranks : {2, 4})
    check_equal(train_run(trial, fmt::format("on{}", ranks), {{ranks}}), one, {.within = 1e-8, .evaluation = true});
  const test::TrainedRun resumed = train_run(trial, "resumed", {{1, {"train.steps=5"}}, {1}});
  check_equal(resumed, one, {.part = ""});
  check_equal(train_run(trial, "moved", {{2, {"train.steps=5"}}, {4}}), one, {.within = 1e-8});
  CHECK_FALSE(one.values("carried/").empty());
}

TEST_CASE("predictions are values of each step, the same in windows as of whole series", "[run]") {
  const test::Trial trial(kShots);
  make_shots(trial);
  REQUIRE(trial.train(0).code == kExitOk);
  const auto predicted = [&](const std::string& name) {
    const std::string file = name + ".h5";
    const test::Outcome outcome =
        trial.echelon({"predict", "results/" + name, "shots/test", "--out", file, "--outputs", "--batch", "3"});
    INFO(outcome.err);
    REQUIRE(outcome.code == kExitOk);
    CHECK_THAT(outcome.out, Contains("accuracy") && !Contains("perplexity"));
    return file;
  };
  const std::string windows = trial / predicted("trial");
  const std::string shard = trial / "shots/test/shard-0000.h5";
  const auto lengths = all_of<std::int32_t>(shard, "lengths", DType::i32);
  CHECK(all_of<std::int32_t>(windows, "lengths", DType::i32) == lengths);
  const auto labels = all_of<std::int32_t>(shard, "labels", DType::i32);
  const auto outputs = all_of<float>(windows, "outputs", DType::f32);
  REQUIRE(outputs.size() == labels.size());
  double loss = 0;
  for (std::size_t i = 0; i < labels.size(); ++i)
    loss += std::max(0.0, 1 - (labels[i] == 1 ? 1 : -1) * static_cast<double>(outputs[i]));
  CHECK(h5::Reader(windows).attribute_double("loss") ==
        Approx(loss / static_cast<double>(labels.size())).epsilon(1e-5));
  CHECK(trial.summary()["test_loss"].get<double>() == Approx(loss / static_cast<double>(labels.size())).epsilon(1e-5));

  // The same weights over whole series: a step that changes nothing saves them.
  const test::Outcome whole = trial.train(
      0, {"name=whole", "model.weights=results/trial", "data.order=samples", "data.sequence_length=0", "train.epochs=0",
          "train.steps=1", "optimizer.rule=sgd", "optimizer.momentum=0", "optimizer.learning_rate=1e-30"});
  INFO(whole.err);
  REQUIRE(whole.code == kExitOk);
  const auto of_whole = all_of<float>(trial / predicted("whole"), "outputs", DType::f32);
  REQUIRE(of_whole.size() == outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) REQUIRE(of_whole[i] == Approx(outputs[i]).margin(1e-6));
}

TEST_CASE("streams of series are refused where a state would be lost, and memory is predicted", "[run]") {
  const test::Trial trial(kShots);
  make_shots(trial);
  const auto refused = [&](const test::Sets& sets) {
    const test::Outcome outcome = trial.check(sets, {"--replicas", "2"});
    CHECK(outcome.code == kExitConfig);
    return outcome.err;
  };
  CHECK_THAT(refused({"exchange.strategy=backup", "exchange.backup.replicas=1", "optimizer.clip_norm=0"}),
             Contains("stream"));
  CHECK_THAT(refused({"data.balance=speed"}), Contains("stream"));
  CHECK_THAT(refused({"data.buckets=[30]"}), Contains("stream"));
  CHECK_THAT(refused({"data.ragged=wrap", "batch.global=40"}), Contains("37 series are too few for 40 rows"));
  const test::Sets f32 = {"device.kind=onednn", "device.dtype=f32",      "device.threads=1",
                          "train.steps=1",      "model.widths=[64, 64]", "name=memory"};
  const test::Outcome plan = trial.check(f32);
  INFO(plan.out << plan.err);
  REQUIRE(plan.code == kExitOk);
  CHECK_THAT(plan.out, Contains("reads whole series"));
  const std::string amount = plan.out.substr(plan.out.find("\nmemory") + 7);
  REQUIRE(trial.train(0, f32).code == kExitOk);
  double predicted = std::stod(amount);
  if (amount.find("KiB") < amount.find("MiB")) predicted /= 1024;
  CHECK(predicted == Approx(trial.summary("memory")["device_peak_mb"][0].get<double>()).epsilon(0.02));
}

TEST_CASE("numbers of steps in padded arrays: errors and R2 are of each target over all steps", "[run]") {
  const test::Trial trial(R"(name = "trial"
[data]
train = "a.h5"
order = "stream"
sequence_length = 4
ragged = "zero_weight"
[data.hdf5]
samples = "x"
axes = "NTF"
lengths = "n"
labels = "y"
label_form = "steps"
[batch]
global = 5
[train]
epochs = 2
[model]
loss = "mae"
[[model.layers]]
type = "lstm"
units = 6
carry = true
[[model.layers]]
type = "dense"
units = 2
)");
  constexpr std::int64_t kSeries = 17, kStored = 11, kTargets = 2;
  const HashRng draws(test::test_seed(), "numbers of steps");
  std::vector<std::int32_t> lengths;
  std::vector<float> x, y, kept;
  for (std::int64_t s = 0; s < kSeries; ++s) {
    lengths.push_back(static_cast<std::int32_t>(3 + draws.below(static_cast<std::uint64_t>(s), kStored - 2)));
    std::array<float, kTargets> sum{};
    for (std::int64_t t = 0; t < kStored; ++t)
      for (std::size_t k = 0; k < kTargets; ++k) {
        const bool real = t < lengths.back();
        x.push_back(real ? static_cast<float>(2 * draws.uniform(100 + x.size()) - 1) : NAN);
        y.push_back(real ? sum[k] += x.back() : NAN);
        if (real) kept.push_back(y.back());
      }
  }
  h5::Writer writer(trial / "a.h5");
  writer.write_all("n", DType::i32, {kSeries}, lengths.data());
  writer.write_all("x", DType::f32, {kSeries, kStored, kTargets}, x.data());
  writer.write_all("y", DType::f32, {kSeries, kStored, kTargets}, y.data());
  writer.publish();
  REQUIRE(trial.train(0).code == kExitOk);
  REQUIRE(trial.echelon({"predict", "results/trial", "a.h5", "--out", "p.h5"}).code == kExitOk);
  CHECK(all_of<std::int32_t>(trial / "p.h5", "lengths", DType::i32) == lengths);
  const auto outputs = all_of<float>(trial / "p.h5", "outputs", DType::f32);
  REQUIRE(outputs.size() == kept.size());
  double absolute = 0, r2 = 0;
  const auto steps = static_cast<double>(kept.size() / kTargets);
  for (std::size_t k = 0; k < kTargets; ++k) {
    double square = 0, sum = 0, squares = 0;
    for (std::size_t i = k; i < kept.size(); i += kTargets) {
      const double target = static_cast<double>(kept[i]), apart = static_cast<double>(outputs[i]) - target;
      absolute += std::abs(apart), square += apart * apart, sum += target, squares += target * target;
    }
    r2 += (1 - square / (squares - sum * sum / steps)) / kTargets;
  }
  const h5::Reader predicted(trial / "p.h5");
  CHECK(predicted.attribute_double("mae") == Approx(absolute / steps / kTargets).epsilon(1e-5));
  CHECK(predicted.attribute_double("loss") == Approx(absolute / steps / kTargets).epsilon(1e-5));
  CHECK(predicted.attribute_double("r2") == Approx(r2).margin(1e-4));
}

TEST_CASE("labels of steps come from tables: a class a line", "[run]") {
  const test::Trial trial(R"(name = "trial"
[data]
train = "walks"
buckets = 2
[batch]
global = 6
[train]
epochs = 2
[[model.layers]]
type = "gru"
units = 6
[[model.layers]]
type = "dense"
units = 2
)");
  std::ofstream table(trial / "walks.csv");
  for (int walk = 0; walk < 30; ++walk)
    for (int t = 0; t < 3 + walk % 5; ++t)
      table << fmt::format("w{},{},{},{}\n", walk, t % 2 == 0 ? "up" : "down", t, walk);
  table.close();
  CHECK_THAT(trial.make_data({"import", "sequences", "walks.csv", "--step-labels", "--out", "walks"}), Contains("30"));
  const test::Outcome seen = trial.echelon({"data", "inspect", "walks"});
  CHECK_THAT(seen.out, Contains("2 classes for each step") && Contains("labels"));
  REQUIRE(trial.train(0).code == kExitOk);
  REQUIRE(trial.echelon({"predict", "results/trial", "walks", "--out", "out.h5"}).code == kExitOk);
  const auto chosen = all_of<std::int32_t>(trial / "out.h5", "predictions", DType::i32);
  CHECK(chosen.size() == 6 * (3 + 4 + 5 + 6 + 7));
  const test::Outcome other = trial.echelon({"data", "import", "sequences", "walks.csv", "--out", "other"});
  CHECK(other.code == kExitData);
  CHECK_THAT(other.err, Contains("--step-labels"));
}

}  // namespace
}  // namespace echelon
