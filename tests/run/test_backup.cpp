// SPDX-License-Identifier: Apache-2.0
// Backup workers as a user runs them: late replicas drop their gradients and join the step that is open, are counted,
// and meet the others at the end of an epoch; runs are stopped, saved and resumed.
#include <catch2/catch.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/run/compare.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::train_run;

test::Sets backup(const test::Sets& more = {}) {
  return test::with({"exchange.strategy=backup", "exchange.bucket_mb=0.01"}, more);
}

}  // namespace

TEST_CASE("without backup workers 3 ranks train as one replica does, and resume to the same bits", "[run]") {
  const test::Trial trial;
  const test::Sets exact = {"device.kind=reference", "device.dtype=f64"};  // another order of sums differs by 1e-16
  const test::Sets sets = test::with(exact, {"exchange.backup.replicas=0", "exchange.backup.period=20"});
  const test::TrainedRun whole = train_run(trial, "whole", {{3, {}}}, backup(sets));
  const test::TrainedRun cut =
      train_run(trial, "cut", {{3, {"train.steps=20"}}, {3, {}, "from step 20"}}, backup(sets));
  test::check_equal(cut, whole, {.part = ""});
  test::check_equal(whole, train_run(trial, "one", {{0, exact}}), {.within = 1e-8, .evaluation = false});
  CHECK(whole.summary()["wire_bytes_per_step"].get<double>() ==
        Approx(whole.summary()["formula_bytes_per_step"].get<double>()).epsilon(1e-12));
  const nlohmann::json summary = whole.summary();
  for (const auto& dropped : summary["gradients_dropped"]) CHECK(dropped == 0);
  const test::Sets served = test::with(sets, {"exchange.server.ranks=1", "exchange.server.partition=variables"});
  test::check_equal(train_run(trial, "served", {{4, {}}}, backup(served)), whole, {.part = ""});
}

TEST_CASE("a step takes the gradients of 2 of 3 ranks and counts what is dropped", "[run]") {
  const test::Trial trial;
  const test::TrainedRun run = train_run(trial, "trial", {{3, {"train.epochs=8"}}}, backup());
  INFO(run.out);
  const auto summary = run.summary();
  CHECK(summary["steps"] == 136);
  CHECK(summary["test_accuracy"].get<double>() > 0.7);
  CHECK_THAT(run.out, Contains("the first 2 of 3 gradients enter a step"));
  double gradients = 0, samples = 0;
  for (const auto& dropped : summary["gradients_dropped"]) gradients += dropped.get<double>();
  for (const auto& dropped : summary["samples_dropped"]) samples += dropped.get<double>();
  CHECK(summary["gradients_dropped"].size() == 3);
  CHECK(gradients > 0);
  CHECK(gradients <= 136);
  CHECK(samples >= gradients);
  CHECK_THAT(run.out, Contains("samples dropped"));
  CHECK(summary["wire_bytes_per_step"].get<double>() ==
        Approx(summary["formula_bytes_per_step"].get<double>()).epsilon(1e-9));
}

TEST_CASE("a worker that is stopped for a while delays no step where servers have ranks of their own", "[run]") {
  const test::Trial trial;
  const test::Sets sets = backup({"exchange.server.ranks=1", "batch.global=6", "device.pace_ms=5", "train.epochs=4"});
  const test::Outcome outcome =
      trial.train_and(4, sets, "running; kill -STOP $(rank 2); sleep 0.5; kill -CONT $(rank 2); wait $pid");
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == kExitOk);
  CHECK_THAT(outcome.out, Contains("1 server beside the workers"));
  const auto summary = nlohmann::json::parse(read_file_whole(trial.attempt() + "/summary.json"));
  REQUIRE(summary["samples_dropped"].size() == 4);  // workers only, not the server
  CHECK(summary["samples_dropped"][3] == 0);
  CHECK(summary["samples_dropped"][2].get<double>() >= 2 * 15);  // from the steps that the others took meanwhile
}

TEST_CASE("a run with backup workers is stopped by a signal to any rank, and goes on with another number",
          "[run][slow]") {
  const test::Trial trial;
  const test::Sets sets = backup({"train.epochs=40", "exchange.backup.period=5"});
  const test::Outcome stopped = trial.train_and(3, sets, "running; kill -USR1 $(rank 2); wait $pid");
  INFO(stopped.out << stopped.err);
  REQUIRE(stopped.code == kExitRequeue);
  CHECK(trial.status()["step"] > 0);
  const test::TrainedRun resumed = train_run(trial, "trial", {{2, {}, "from step "}}, sets);
  CHECK_THAT(resumed.out, Contains("a run of 3 replicas"));
  CHECK(resumed.summary()["steps"] == 680);
  CHECK(resumed.summary()["test_accuracy"].get<double>() > 0.7);
}

TEST_CASE("what needs all replicas in a step, or whole gradients, is refused beside backup workers", "[run]") {
  const test::Trial trial;
  for (const std::string key : {"parallel.tensor=2", "train.reproducible=true", "exchange.codec=topk",
                                "optimizer.clip_norm=1", "optimizer.rule=lamb"}) {
    const test::Outcome refused = trial.check(backup({key}), {"--ranks", "4"});
    INFO(key << "\n" << refused.out << refused.err);
    CHECK(refused.code == kExitConfig);
    CHECK_THAT(refused.err, Contains("backup"));
  }
  const test::Outcome unread = trial.check(backup({"exchange.algorithm=tree"}), {"--ranks", "4"});
  CHECK(unread.code == kExitConfig);
  CHECK_THAT(unread.err, Contains("exchange.algorithm is not used here"));
  const test::Outcome many = trial.check(backup({"exchange.backup.replicas=4"}), {"--replicas", "4"});
  INFO(many.out << many.err);
  CHECK(many.code == kExitConfig);
  CHECK_THAT(many.err, Contains("nearest valid: 3"));
}

}  // namespace echelon
