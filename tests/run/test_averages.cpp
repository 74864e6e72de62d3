// SPDX-License-Identifier: Apache-2.0
// Evaluations, predictions and exports use the averages of weights (optimizer.average_decay); samples are mixed where
// replicas share steps by their speed or draw batches.
#include <catch2/catch.hpp>
#include <cmath>

#include "h5/file.hpp"
#include "tests/run/compare.hpp"
#include "tests/support/random.hpp"

namespace echelon::test {
namespace {

const Sets kTiny = {"device.kind=reference", "device.dtype=f64", "train.steps=5", "evaluate.every_epochs=0",
                    "checkpoint.every_steps=0"};

Outcome done(const Trial& trial, const std::vector<std::string>& words) {
  Outcome outcome = trial.echelon(words);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome;
}

// The outputs that `predict` writes with the model of a run.
std::vector<double> outputs(const Trial& trial, const std::string& name) {
  const std::string out = name + ".h5";
  done(trial, {"predict", trial.run(name), "test", "--outputs", "--out", out});
  const h5::Reader file(trial / out);
  std::vector<double> values(static_cast<std::size_t>(file.info("outputs").shape.elems()));
  file.read_all("outputs", values.data(), DType::f64);
  return values;
}

}  // namespace

TEST_CASE("export, predict and model.weights take the averages of a run", "[run][recipes]") {
  const Trial trial;
  const TrainedRun run = train_run(trial, "averaged", {{2}}, with(kTiny, {"optimizer.average_decay=0.9"}));
  const std::vector<double> average = run.values("average/"), weights = run.values("weights/");
  REQUIRE(relative_distance(average, weights) > 1e-3);
  done(trial, {"export", trial.run("averaged"), "--out", "averaged.safetensors"});
  // A step of a rate that changes no bit keeps the weights with which a run begins.
  const auto begun = [&](const std::string& name, const std::string& from) {
    return train_run(trial, name, {{0}},
                     with(kTiny, {"model.weights=" + from, "train.steps=1", "optimizer.learning_rate=1e-40"}));
  };
  CHECK(relative_distance(begun("of_file", "averaged.safetensors").values("weights/"), average) == 0);
  CHECK(relative_distance(begun("of_run", trial.run("averaged")).values("weights/"), average) == 0);
  const std::vector<double> predicted = outputs(trial, "averaged");
  CHECK(predicted == outputs(trial, "of_run"));
  // Without the key a run of the same weights predicts by them.
  train_run(trial, "plain", {{2}}, kTiny);
  CHECK(relative_distance(outputs(trial, "plain"), predicted) > 1e-4);
}

TEST_CASE("mixed samples are the same where replicas share steps by speed", "[run][recipes][equality]") {
  const Trial trial;
  const Sets mixed = with(kTiny, {"data.augment.mixup=0.4", "data.augment.cutmix=1", "data.sharding=record",
                                  "data.ragged=zero_weight", "train.steps=20"});
  const Sets unequal = {"device.pace_ms=-1", "device.paced_gflops=0.8", "device.pace_factors=[1, 2]",
                        "data.balance=speed"};
  const TrainedRun one = train_run(trial, "one", {{0}}, mixed);
  const TrainedRun shared = train_run(trial, "shared", {{2, unequal}}, mixed);
  INFO(shared.out);
  CHECK(shared.out.find("the next steps are shared ") != std::string::npos);
  check_equal(shared, one, {.within = 1e-8});
}

TEST_CASE("batches that are drawn are mixed by themselves, whoever draws them", "[run][recipes]") {
  const Trial trial;
  const Sets drawn = with(kTiny, {"data.augment.mixup=0.4", "data.balance=queue", "exchange.strategy=asynchronous",
                                  "data.sharding=record", "train.steps=12"});
  // One worker draws all batches in their order, so the run repeats itself.
  const TrainedRun first = train_run(trial, "first", {{0}}, drawn), again = train_run(trial, "again", {{0}}, drawn);
  check_equal(again, first);
  const TrainedRun two = train_run(trial, "two", {{2}}, drawn);
  for (const double weight : two.values("weights/")) REQUIRE(std::fabs(weight) < 100);
}

}  // namespace echelon::test
