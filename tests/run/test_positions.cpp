// SPDX-License-Identifier: Apache-2.0
// Asynchronous runs with shards, whose workers differ in speed, are stopped and resumed: each worker at its own
// position, or other workers with the samples that nobody has trained.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/error.hpp"
#include "exchange/asynchronous/ledger_file.hpp"
#include "exchange/asynchronous/ledger_meetings.hpp"
#include "tests/run/compare.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::Sets;
using test::train_run;

constexpr std::int64_t kEpochs = 6;

// Worker 1 is four times as slow as the others; an epoch has 17 steps of 48.
Sets unequal(const std::string& strategy, const Sets& more = {}) {
  return test::with({"exchange.strategy=" + strategy, "exchange.bucket_mb=0.01", "device.pace_ms=4",
                     "device.pace_factors=[1, 4]", "data.ragged=zero_weight", "data.sharding=record",
                     "evaluate.every_epochs=0", fmt::format("train.epochs={}", kEpochs)},
                    more);
}

// Returns the updates of each worker in an attempt.
std::vector<std::int64_t> updates_in(const std::string& attempt) {
  LedgerFile file = read_ledger_file(attempt + "/arrivals-0000.bin");
  while (!file.orders.empty() && file.orders.front().empty()) file.orders.erase(file.orders.begin());
  REQUIRE(!file.orders.empty());
  return meetings_of(file.orders.front(), static_cast<int>(file.header.workers)).back().updates;
}

// Returns the samples that replica r of k trains in its first steps: 800 samples in 16 steps of 48, and one of 32.
std::int64_t samples_of(std::int64_t steps, std::int64_t r, std::int64_t k) {
  const std::int64_t batch = 48 / k, rest = std::clamp<std::int64_t>(32 - r * batch, 0, batch);
  return steps / 17 * (16 * batch + rest) + std::min<std::int64_t>(steps % 17, 16) * batch;
}

// Stops the run by a signal; returns the steps of each worker in its checkpoint.
std::vector<double> stop(const test::Trial& trial, int workers, const Sets& sets) {
  const test::Outcome stopped = trial.train_and(workers, sets, "running; sleep 0.2; kill -USR1 $(rank 1); wait $pid");
  INFO(stopped.out << stopped.err);
  REQUIRE(stopped.code == kExitRequeue);
  const nlohmann::json status = trial.status();
  const std::int64_t step = status["step"];
  CHECK_THAT(stopped.out, Contains(fmt::format("the same command continues from step {}\n", step)));
  CHECK(status["checkpoint"] == fmt::format("checkpoints/step-{:08}.h5", step));
  return test::checkpoint_values(trial.run() + "/" + status["checkpoint"].get<std::string>(), "positions/steps");
}

// Stops the run; returns the updates of each worker, which must equal its steps.
std::vector<std::int64_t> stop_updates(const test::Trial& trial, int workers, const Sets& sets) {
  const std::vector<double> steps = stop(trial, workers, sets);
  const std::vector<std::int64_t> updates = updates_in(trial.attempt());
  CHECK(*std::max_element(updates.begin(), updates.end()) == trial.status()["step"]);
  CHECK(steps == std::vector<double>(updates.begin(), updates.end()));
  return updates;
}

}  // namespace

TEST_CASE("workers of different speeds go on where each of them was, and take all their steps", "[run][positions]") {
  const std::string strategy = GENERATE(as<std::string>(), "asynchronous", "stale_synchronous");
  const test::Trial trial;
  const Sets sets = unequal(strategy, {"exchange.server.ranks=0"});
  const std::vector<std::int64_t> before = stop_updates(trial, 2, sets);
  CHECK(before[0] > before[1]);
  const test::TrainedRun resumed = train_run(trial, "trial", {{2, {}, "resuming  from step "}}, sets);
  INFO(resumed.out);
  const std::vector<std::int64_t> after = updates_in(trial.attempt());
  for (std::size_t r = 0; r < 2; ++r) CHECK(before[r] + after[r] == kEpochs * 17);
  CHECK(resumed.summary()["steps"] == kEpochs * 17);
  CHECK(resumed.summary()["epochs"] == kEpochs);
}

TEST_CASE("replicas in asynchronous rounds go on where each of them was", "[run][positions]") {
  const test::Trial trial;
  const Sets sets = unequal("strom", {"exchange.strom.rounds=asynchronous"});
  const std::vector<double> before = stop(trial, 2, sets);
  CHECK(before.at(0) > before.at(1));
  const test::TrainedRun resumed = train_run(trial, "trial", {{2, {}, "resuming  from step "}}, sets);
  INFO(resumed.out);
  CHECK_THAT(resumed.out, !Contains("left out"));
  std::vector<std::int64_t> epochs;
  for (const nlohmann::json& row : trial.metrics("trial"))
    if (row["type"] == "epoch") epochs.push_back(row["epoch"]);
  CHECK(epochs == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("another number of workers trains what those before had left, and is stopped and goes on itself",
          "[run][positions]") {
  const std::int64_t first = GENERATE(2, 3);
  const std::int64_t then = 5 - first;
  const test::Trial trial;
  const Sets sets = unequal("asynchronous");
  const std::vector<std::int64_t> before = stop_updates(trial, static_cast<int>(first), sets);
  std::int64_t trained = 0;
  for (std::size_t r = 0; r < before.size(); ++r) trained += samples_of(before[r], static_cast<std::int64_t>(r), first);
  const test::TrainedRun resumed = train_run(
      trial, "trial", {{static_cast<int>(then), {}, "samples that were not trained are dealt again to "}}, sets);
  INFO(resumed.out);
  std::int64_t batches = 0;
  for (const std::int64_t updates : updates_in(trial.attempt())) batches += updates;
  const std::int64_t left = kEpochs * 800 - trained, batch = 48 / then;
  CHECK(batches >= (left + batch - 1) / batch);
  CHECK(batches <= left / batch + kEpochs);  // at most one incomplete batch an epoch
  CHECK(resumed.summary()["epochs"] == kEpochs);
}

}  // namespace echelon
