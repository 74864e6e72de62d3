// SPDX-License-Identifier: Apache-2.0
// Replicas that lost their common weights, or could not have them: they are named by rank and step, with codes 5 and 3.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/run/trial.hpp"

namespace echelon {
namespace {

test::Outcome train_with_fault(const test::Trial& trial, int ranks, const std::string& fault, const test::Sets& sets) {
  return trial.train(ranks, test::with(sets, {"run.allow_faults=true"}), {{"ECHELON_FAULT", fault}});
}

TEST_CASE("a flipped bit of one replica's weights is named by rank, step and parameter", "[run]") {
  const test::Trial trial;
  const test::Outcome outcome = train_with_fault(trial, 3, "flip bit 0 of weight 20 of rank 1 at step 7",
                                                 {"exchange.verify_every_steps=5", "checkpoint.every_steps=0"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 5);
  CHECK_THAT(outcome.err, Catch::Contains("weights of rank 1 differ from those of most ranks after step 10") &&
                              Catch::Contains("in conv1.weight") && Catch::Contains("they were equal after step 5"));
  CHECK(trial.status()["exit_code"] == 5);
  CHECK(trial.status()["step"] == 10);
  CHECK(trial.status()["state"] == "failed");
}

TEST_CASE("checked at every step, the step is named; with two ranks no majority is claimed", "[run][slow]") {
  const test::Trial trial;
  const test::Outcome outcome = train_with_fault(trial, 2, "flip bit 0 of weight 20 of rank 0 at step 7",
                                                 {"exchange.verify_every_steps=1", "checkpoint.every_steps=0"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 5);
  CHECK_THAT(outcome.err, Catch::Contains("after step 7, in conv1.weight") && Catch::Contains("no majority") &&
                              Catch::Contains("they were equal after step 6"));
}

TEST_CASE("by default a flipped bit is found at the end", "[run][slow]") {
  const test::Trial trial;
  const test::Outcome outcome =
      train_with_fault(trial, 3, "flip bit 31 of weight 20 of rank 2 at step 7", {"train.steps=9"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 5);
  CHECK_THAT(outcome.err, Catch::Contains("rank 2 differ from those of most ranks after step 9") &&
                              Catch::Contains("equal after step 0"));
}

TEST_CASE("ranks with different configs end with 3 and name the keys", "[run]") {
  const test::Trial trial;
  const test::Outcome outcome = trial.in_background(
      "mpirun -n 1 --oversubscribe --bind-to none \"$ECHELON_BINARY\" train trial.toml : "
      "-n 1 env ECHELON_BATCH_GLOBAL=24 ECHELON_TRAIN_EPOCHS=2 \"$ECHELON_BINARY\" train trial.toml",
      "wait $pid");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 3);
  CHECK_THAT(outcome.err, Catch::Contains("batch.global is 48 on rank 0 and 24 on rank 1") &&
                              Catch::Contains("train.epochs is 3 on rank 0 and 2 on rank 1"));
}

TEST_CASE("a fault outside the model is refused", "[run]") {
  const test::Trial trial;
  const test::Outcome outcome = train_with_fault(trial, 0, "flip bit 0 of weight 99999999 of rank 0 at step 7", {});
  INFO(outcome.err);
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, Catch::Contains("rank 0 has elements 0 to "));
}

}  // namespace
}  // namespace echelon
