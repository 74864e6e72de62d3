// SPDX-License-Identifier: Apache-2.0
// data.balance = "queue" as a user runs it: asynchronous workers of unequal speed draw batches from one queue, are
// stopped, and resume on other numbers of workers.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/run/compare.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::train_run;

test::Sets drawing(const test::Sets& more = {}) {
  return test::with({"exchange.strategy=asynchronous", "exchange.bucket_mb=0.01", "data.balance=queue",
                     "data.ragged=zero_weight", "data.prefetch=1"},
                    more);
}

// Sums the samples of the steps in all rows of one rank's metrics.
double samples_of(const test::Trial& trial, const std::string& name) {
  double sum = 0;
  for (const nlohmann::json& row : trial.metrics(name))
    if (row.contains("samples")) sum += row["samples"].get<double>();
  return sum;
}

}  // namespace

TEST_CASE("a slow worker draws fewer batches, and all are trained", "[run]") {
  // An epoch has 51 batches of 16 on 3 workers; rank 0, 4 times as slow as the others, takes 1 batch of 9.
  const test::Trial trial;
  const test::TrainedRun run =
      train_run(trial, "trial", {{3}}, drawing({"train.epochs=3", "device.pace_ms=20", "device.pace_factors=[4]"}));
  INFO(run.out);
  CHECK(run.summary()["steps"] == 51);
  CHECK(run.summary()["epochs"] == 3);
  CHECK(run.summary()["test_accuracy"].get<double>() > 0.3);
  const double of_slow = samples_of(trial, "trial");
  CHECK(of_slow > 2400.0 / 9 * 0.5);
  CHECK(of_slow < 0.75 * 800);  // it would train 800 samples by shards
}

TEST_CASE("what a slow worker trains after the others' last step is saved", "[run]") {
  const test::Trial trial;
  const test::Sets sets = test::with(drawing({"train.epochs=3", "device.pace_ms=4", "device.pace_factors=[1, 8]"}),
                                     {"data.balance=static"});
  const test::TrainedRun run = train_run(trial, "trial", {{2}}, sets);
  const test::Outcome eval = trial.echelon({"eval", trial.run(), "test"});
  INFO(run.out << eval.out << eval.err);
  const std::size_t loss = eval.out.find("\nloss ");
  REQUIRE(loss != std::string::npos);
  CHECK(std::stod(eval.out.substr(loss + 6)) == Approx(run.summary()["test_loss"].get<double>()).epsilon(1e-3));
}

TEST_CASE("a queue is stopped by a signal and taken up by another number of workers", "[run][slow]") {
  const test::Trial trial;
  const test::Sets sets = drawing({"train.epochs=20"});
  const test::Outcome stopped = trial.train_and(3, sets, "running; kill -USR1 $(rank 2); wait $pid");
  INFO(stopped.out << stopped.err);
  REQUIRE(stopped.code == kExitRequeue);
  const test::TrainedRun resumed =
      train_run(trial, "trial", {{2, {"train.epochs=12"}, "resuming  from step "}, {4}}, sets);
  CHECK(resumed.summary()["steps"] == 340);
  CHECK(resumed.summary()["test_accuracy"].get<double>() > 0.8);
}

TEST_CASE("workers without a batch of their own wait for the others", "[run]") {
  const test::Trial trial(
      "name = \"trial\"\n[model]\nzoo = \"digits_cnn\"\n[data]\ntrain = \"train.h5\"\n"
      "test = \"train.h5\"\n[batch]\nglobal = 4\n[device]\nkind = \"onednn\"\nthreads = 1\n");
  test::write_shard(trial / "train.h5", 2, "few");
  const test::TrainedRun run = train_run(trial, "trial", {{4, {"train.epochs=5"}}}, drawing());
  CHECK(run.summary()["steps"] == 5);
}

TEST_CASE("replicas that step together are refused a queue, with the reason", "[run]") {
  const test::Trial trial;
  const test::Outcome refused = trial.check({"data.balance=queue"});
  INFO(refused.out << refused.err);
  CHECK(refused.code == kExitConfig);
  CHECK_THAT(refused.err, Contains("its replicas count steps together: each takes equally many batches"));
}

}  // namespace echelon
