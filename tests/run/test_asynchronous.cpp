// The asynchronous parameter server as a user runs it: nobody waits for another worker, all meet at ends of epochs,
// runs are stopped, saved and resumed.

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/run/compare.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::train_run;

test::Sets asynchronous(const test::Sets& more = {}) {
  return test::with({"exchange.strategy=asynchronous", "exchange.bucket_mb=0.01"}, more);
}

}  // namespace

TEST_CASE("asynchronous workers train to the end under any rules, on MPI", "[run]") {
  const auto rules = GENERATE(test::Sets{}, test::Sets{"exchange.asynchronous.bound=0"},
                              test::Sets{"exchange.asynchronous.bound=1", "exchange.asynchronous.soft=2"},
                              test::Sets{"exchange.asynchronous.drop_above=4", "exchange.servers=1"});
  const test::Trial trial;
  const test::TrainedRun run = train_run(trial, "trial", {{3, {"train.epochs=12"}}}, asynchronous(rules));
  INFO(run.out);
  CHECK(run.summary()["test_accuracy"].get<double>() > 0.8);
  CHECK_THAT(run.out, Contains("staleness: mean "));
  const double applied = run.summary()["updates_applied"], dropped = run.summary()["updates_dropped"];
  CHECK(applied > 0);
  if (rules.empty() || !rules.front().starts_with("exchange.asynchronous.drop_above")) CHECK(dropped == 0);
  if (!rules.empty() && rules.front().ends_with("bound=1"))
    CHECK(run.summary()["staleness_largest"].get<double>() <= 3);  // (2 s + 1) (k - 1) / S
  const double rate = run.summary()["samples_per_s"]["median"], step_s = run.summary()["step_s"]["median"];
  CHECK(rate * step_s > 1.02 * run.summary()["global_batch"].get<double>() / 3);  // of rank 0 alone: a third
  CHECK(run.summary()["wire_bytes_per_step"].get<double>() ==
        Approx(run.summary()["formula_bytes_per_step"].get<double>()).epsilon(0.02));
}

TEST_CASE("an asynchronous run is stopped by a signal to any worker, and goes on with another number", "[run][slow]") {
  const test::Trial trial;
  const test::Sets sets = asynchronous({"train.epochs=40", "exchange.asynchronous.bound=2"});
  const test::Outcome stopped = trial.train_and(3, sets, "running; kill -USR1 $(rank 2); wait $pid");
  INFO(stopped.out << stopped.err);
  REQUIRE(stopped.code == kExitRequeue);
  CHECK(trial.status()["step"] > 0);
  const test::TrainedRun resumed = train_run(trial, "trial", {{2, {}, "resuming  from step "}}, sets);
  CHECK_THAT(resumed.out, Contains("a run of 3 replicas"));
  CHECK(resumed.summary()["steps"] == 680);
  CHECK(resumed.summary()["test_accuracy"].get<double>() > 0.9);
}

TEST_CASE("what needs replicas in step is refused beside the asynchronous strategy, with the reason", "[run]") {
  const test::Trial trial;
  for (const std::string key : {"parallel.tensor=2", "train.reproducible=true", "exchange.codec=topk"}) {
    const test::Outcome refused = trial.check(asynchronous({key}), {"--ranks", "4"});
    INFO(key << "\n" << refused.out << refused.err);
    CHECK(refused.code == kExitConfig);
    CHECK_THAT(refused.err, Contains("asynchronous"));
  }
}

}  // namespace echelon
