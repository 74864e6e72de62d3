// SPDX-License-Identifier: Apache-2.0
// evaluate.every_steps: replicas that step together evaluate at meetings; other strategies evaluate a snapshot of one
// replica, for which no rank stops.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/run/compare.hpp"

namespace echelon {
namespace {

using nlohmann::json;
using test::Sets;
using test::train_run;

std::vector<json> rows_of(const test::Trial& trial, const std::string& type) {
  std::vector<json> rows;
  for (const json& row : trial.metrics())
    if (row["type"] == type) rows.push_back(row);
  return rows;
}

std::vector<int> steps_of(const std::vector<json>& rows) {
  std::vector<int> steps;
  for (const json& row : rows) steps.push_back(row["step"].get<int>());
  return steps;
}

// Returns the largest staleness among a worker's updates.
std::int64_t largest_staleness(const test::Trial& trial, std::size_t worker) {
  return json::parse(read_file_whole(trial.attempt() + "/staleness.json"))["workers"][worker]["largest"];
}

}  // namespace

TEST_CASE("replicas that step together evaluate at the next meeting, to the figures of the epoch", "[run][evaluate]") {
  const test::Trial trial;
  SECTION("every step") {
    train_run(trial, "trial", {{2, {"evaluate.every_steps=17", "train.epochs=2"}}});
    const std::vector<json> tests = rows_of(trial, "test"), epochs = rows_of(trial, "epoch");
    CHECK(steps_of(tests) == std::vector<int>{17, 34});
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(tests[i]["test_loss"] == epochs[i]["test_loss"]);
      CHECK(tests[i]["test_accuracy"] == epochs[i]["test_accuracy"]);
    }
  }
  SECTION("by period") {
    train_run(
        trial, "trial",
        {{2,
          {"exchange.strategy=averaging", "exchange.averaging.period=4", "evaluate.every_steps=5", "train.epochs=1"}}});
    CHECK(steps_of(rows_of(trial, "test")) == std::vector<int>{8, 12, 16});
  }
  CHECK(rows_of(trial, "snapshot").empty());
}

TEST_CASE("a snapshot of the only replica has the figures of its epoch", "[run][evaluate]") {
  const test::Trial trial;
  train_run(
      trial, "trial",
      {{0,
        {"exchange.strategy=asynchronous", "evaluate.every_steps=16", "optimizer.learning_rate=0", "train.epochs=2"}}});
  const std::vector<json> snapshots = rows_of(trial, "snapshot"), epochs = rows_of(trial, "epoch");
  CHECK(steps_of(snapshots) == std::vector<int>{16, 32});
  for (const json& row : snapshots) CHECK(row["test_loss"] == epochs[0]["test_loss"]);
}

TEST_CASE("a worker that evaluates a snapshot is stale for it, and no other one waits", "[run][evaluate]") {
  const std::string strategy = GENERATE(as<std::string>(), "asynchronous", "stale_synchronous");
  const bool bounded = strategy != "asynchronous";
  const test::Trial trial;
  // Evaluating 800 samples one by one takes as long as many steps of 8 samples, however fast the machine is.
  const Sets sets = {"exchange.strategy=" + strategy,
                     "exchange.bucket_mb=0.01",
                     "exchange.servers=1",
                     "batch.global=16",
                     "data.test=train",
                     "evaluate.batch=1",
                     "evaluate.every_epochs=0",
                     "evaluate.every_steps=40",
                     "train.epochs=3"};
  const test::TrainedRun run = train_run(trial, "trial", {{2}}, sets);
  INFO(run.out);
  const std::vector<json> snapshots = rows_of(trial, "snapshot");
  REQUIRE(snapshots.size() >= 1);  // at 40 and 80, unless a meeting falls there
  for (const json& row : snapshots) {
    CHECK(row["step"].get<int>() % 40 <= 1);
    CHECK(row["test_loss"].get<double>() > 0);
    CHECK(row["seconds"].get<double>() > 0);
  }
  if (bounded)
    CHECK(largest_staleness(trial, 0) <= 7);  // (2 bound + 1) (k - 1): the other one waits for this one
  else
    CHECK(largest_staleness(trial, 0) >= 5);  // updates of the other worker meanwhile
  if (!bounded) CHECK(run.summary()["staleness_by_worker"]["waited_s"][1] == 0);
}

TEST_CASE("snapshots change no weight", "[run][evaluate]") {
  const test::Trial trial;
  const Sets sets = {"exchange.strategy=stale_synchronous",
                     "exchange.stale_synchronous.bound=0",
                     "optimizer.momentum=0",
                     "exchange.asynchronous.rate=share",
                     "device.kind=reference",
                     "device.dtype=f64"};
  const test::TrainedRun plain = train_run(trial, "plain", {{2}}, sets);
  const test::TrainedRun tested = train_run(trial, "tested", {{2, {"evaluate.every_steps=3"}}}, sets);
  check_equal(tested, plain, {.part = "weights/", .within = 1e-10});
}

}  // namespace echelon
