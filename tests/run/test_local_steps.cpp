// SPDX-License-Identifier: Apache-2.0
// Strategies whose replicas take their own steps, as a user runs them: trained, saved, stopped by a signal, resumed on
// other numbers of replicas and under another strategy.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/run/compare.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::check_equal;
using test::train_run;

// An epoch has 17 steps: exchanges follow steps 5, 10, 15, 17, 20, 25, 30, 34, ..
test::Sets local_steps(const std::string& strategy, const test::Sets& more = {}) {
  test::Sets sets = {"exchange.strategy=" + strategy, "exchange." + strategy + ".period=5", "exchange.bucket_mb=0.01"};
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

}  // namespace

TEST_CASE("replicas with steps of their own train, tell their drift, and resume to the same bits", "[run]") {
  const auto sets = GENERATE(
      local_steps("averaging", {"exchange.averaging.outer_momentum=0.3"}),
      local_steps("averaging", {"exchange.averaging.outer_step=nesterov", "exchange.averaging.outer_momentum=0.5"}),
      local_steps("averaging", {"exchange.codec=topk", "exchange.density=0.2"}),
      local_steps("elastic", {"optimizer.rule=adam", "optimizer.learning_rate=0.003"}));
  const test::Trial trial;
  const test::TrainedRun whole = train_run(trial, "whole", {{3}}, sets);
  INFO(whole.out);
  CHECK(whole.summary()["test_accuracy"].get<double>() > 0.8);
  const auto wire = whole.summary()["wire_bytes_per_step"], formula = whole.summary()["formula_bytes_per_step"];
  if (!formula.is_null()) CHECK(wire.get<double>() == Approx(formula.get<double>()).epsilon(1e-9));
  for (const auto& row : trial.metrics("whole")) {
    if (!row.contains("loss")) continue;
    const int step = row["step"], in_epoch = step % 17;
    const bool exchanged = step % 5 == 0 || in_epoch == 0;
    CAPTURE(step);
    CHECK(row.contains("drift") == exchanged);
    if (exchanged) CHECK((row["drift"].get<double>() > 0 && row["drift"].get<double>() < 1));
  }
  check_equal(train_run(trial, "cut", {{3, {"train.steps=20"}}, {3, {}, "from step 20:"}}, sets), whole, {.part = ""});
}

TEST_CASE("a signal stops local steps at the next averaging, on all replicas", "[run][slow]") {
  const test::Trial trial;
  const test::Sets sets = local_steps("averaging", {"train.epochs=40", "checkpoint.every_epochs=0"});
  const test::TrainedRun whole = train_run(trial, "whole", {{2}}, sets);
  const test::Outcome stopped = trial.train_and(2, sets, "running; kill -USR1 $(rank 1); wait $pid");
  INFO(stopped.out << stopped.err);
  REQUIRE(stopped.code == kExitRequeue);
  const int step = trial.status()["step"];
  CHECK((step % 5 == 0 || step % 17 == 0));
  check_equal(train_run(trial, "trial", {{2, {}, fmt::format("from step {}:", step)}}, sets), whole, {.part = ""});
}

TEST_CASE("local steps go on with another number of replicas, and under another strategy", "[run]") {
  for (const std::string strategy : {"averaging", "elastic"}) {
    const test::Trial trial;
    const test::TrainedRun run =
        train_run(trial, "trial", {{3, {"train.steps=20"}}, {1, {"train.steps=34"}, "a run of 3 replicas"}, {2}},
                  local_steps(strategy));
    CHECK(run.summary()["test_accuracy"].get<double>() > (strategy == "elastic" ? 0.5 : 0.8));  // the centre lags
    const test::Outcome other = trial.train(
        2, {"name=other", "exchange.strategy=synchronous", "train.epochs=4", "run.resume_from=" + trial.run()});
    INFO(other.out << other.err);
    CHECK(other.code == kExitOk);
    CHECK_THAT(other.out, Contains("from step 51 of another run") && Contains("resumed from `" + strategy + "`; ") &&
                              Contains(" dropped"));
  }
}

TEST_CASE("check counts the arenas that a strategy keeps", "[run]") {
  for (const auto& sets :
       {local_steps("averaging"), local_steps("elastic"),
        local_steps("averaging", {"exchange.averaging.outer_momentum=0.3"}),
        local_steps("averaging", {"exchange.averaging.outer_step=nesterov", "exchange.averaging.outer_momentum=0.9"}),
        local_steps("noloco")}) {
    const test::Trial trial;
    const test::Outcome plan = trial.check(sets, {"--replicas", "2"});
    INFO(plan.out << plan.err);
    REQUIRE(plan.code == 0);
    CHECK_THAT(plan.out, Contains("every 5 steps over all ranks"));
    const test::TrainedRun run = train_run(trial, "trial", {{2, {"run.restart=never", "train.steps=5"}}}, sets);
    const double held = run.summary()["device_peak_mb"][0];
    const auto limited = [&](double part) {
      return trial
          .check(test::with(sets, {fmt::format("device.memory_limit_mb={:.4f}", part * held)}), {"--replicas", "2"})
          .code;
    };
    CHECK(limited(0.99) == kExitMemory);
    CHECK(limited(1.01) == kExitOk);
  }
}

}  // namespace echelon
