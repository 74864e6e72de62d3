// SPDX-License-Identifier: Apache-2.0
// [monitor] on real runs: one that diverges, one on a plateau, one with a slowed rank.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon::test {
namespace {

using Catch::Contains;

}  // namespace

TEST_CASE("a run that diverges is ended with 5, told, or left alone", "[run][monitor][slow]") {
  const Trial trial;
  const Sets wild = {"optimizer.learning_rate=100", "evaluate.every_epochs=0"};
  const Outcome stopped = trial.train(2, with(wild, {"name=stop"}));
  INFO(stopped.out << stopped.err);
  CHECK(stopped.code == kExitNumeric);
  CHECK_THAT(stopped.err, Contains("training diverges: the loss is"));
  const Outcome warned = trial.train(2, with(wild, {"name=warn", "monitor.divergence=warn"}));
  INFO(warned.out << warned.err);
  CHECK_THAT(warned.out + warned.err, Contains("warning: training diverges: the loss is"));
  CHECK_THAT(warned.err, !Contains("error: training diverges"));
  const Outcome off = trial.train(2, with(wild, {"name=off", "monitor.divergence=off"}));
  CHECK_THAT(off.out + off.err, !Contains("diverges"));
}

TEST_CASE("a run on a plateau is finished, and stays so", "[run][monitor][slow]") {
  const Trial trial;
  const Sets sets = {"optimizer.learning_rate=0", "monitor.plateau=stop", "monitor.plateau_evaluations=2",
                     "train.epochs=30"};
  const Outcome stopped = trial.train(2, sets);
  INFO(stopped.out << stopped.err);
  REQUIRE(stopped.code == kExitOk);
  CHECK(trial.status()["state"] == "finished");
  CHECK(trial.status()["step"] == 51);
  CHECK_THAT(trial.status()["reason"].get<std::string>(), Contains("plateau at step 51"));
  const Outcome again = trial.train(2, sets);
  CHECK(again.code == kExitOk);
  CHECK_THAT(again.out, Contains("already finished"));
  const Outcome missed = trial.train(2, with(sets, {"name=goal", "goal.metric=test_accuracy", "goal.target=0.99"}));
  CHECK(missed.code == kExitUnmet);
}

TEST_CASE("a slowed rank is named while the run goes on, or ends it with a checkpoint", "[run][monitor][slow]") {
  const Trial trial;
  const Sets sets = {"device.pace_ms=5",     "device.pace_factors=[1, 3]",
                     "monitor.slow_steps=5", "evaluate.every_epochs=0",
                     "train.epochs=1",       "checkpoint.every_steps=0"};
  const Outcome warned = trial.train(2, with(sets, {"name=warn"}));
  INFO(warned.out << warned.err);
  REQUIRE(warned.code == kExitOk);
  const std::string told = "rank 1 on ";
  CHECK_THAT(warned.out + warned.err, Contains(told) && Contains("is slow at step"));
  const Outcome stopped = trial.train(2, with(sets, {"name=stop", "monitor.slow_rank=stop"}));
  INFO(stopped.out << stopped.err);
  CHECK(stopped.code == kExitRequeue);
  CHECK_THAT(trial.status("stop")["reason"].get<std::string>(),
             Contains("rank 1 on ") && Contains("checkpoint of step"));
  const Outcome again = trial.train(2, with(sets, {"name=stop", "monitor.slow_rank=off"}));
  CHECK(again.code == kExitOk);
  CHECK_THAT(again.out, Contains("resuming  from step"));
}

}  // namespace echelon::test
