// SPDX-License-Identifier: Apache-2.0
// [goal] of a run: the run ends at the goal if told to, and exits with 8 where it does not reach it.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon {

using Catch::Contains;

TEST_CASE("a run ends at its goal, stays finished, and goes on for a higher one", "[run]") {
  const test::Trial trial;
  const bool asynchronous = GENERATE(false, true);
  const test::Sets strategy = asynchronous ? test::Sets{"exchange.strategy=asynchronous"} : test::Sets{};
  const auto train_to = [&](double target) {
    return trial.train(2, test::with(strategy, {"goal.metric=test_accuracy", "goal.target=" + std::to_string(target),
                                                "goal.stop=true"}));
  };
  const test::Outcome low = train_to(0.05);
  INFO(low.out << low.err);
  REQUIRE(low.code == kExitOk);
  CHECK_THAT(low.out, Contains("goal met: test_accuracy"));
  CHECK(trial.status()["state"] == "finished");
  CHECK(trial.status()["step"].get<int>() < 51);
  CHECK_THAT(trial.status()["reason"].get<std::string>(), Contains("goal met"));
  const std::string saved = trial.status()["checkpoint"];
  CHECK_THAT(saved, Contains(std::to_string(trial.status()["step"].get<int>())));

  const test::Outcome again = train_to(0.05);
  CHECK(again.code == kExitOk);
  CHECK_THAT(again.out, Contains("already finished"));
  CHECK(trial.attempts() == 1);

  const test::Outcome high = train_to(1);
  INFO(high.out << high.err);
  CHECK(trial.attempts() == 2);
  CHECK(trial.status()["step"].get<int>() >= 51);
  const bool reached = trial.summary()["test_accuracy"].get<double>() >= 1;
  CHECK(high.code == (reached ? kExitOk : kExitUnmet));
  CHECK(train_to(1).code == high.code);
  CHECK(trial.attempts() == 2);
}

TEST_CASE("evaluations between epochs end a run at its goal too", "[run]") {
  const test::Trial trial;
  const test::Outcome run = trial.train(2, {"goal.metric=test_loss", "goal.target=2.29", "goal.stop=true",
                                            "evaluate.every_steps=3", "checkpoint.every_steps=0"});
  INFO(run.out << run.err);
  REQUIRE(run.code == kExitOk);
  const int step = trial.status()["step"];
  CHECK(step % 3 == 0);
  CHECK(step < 17);
  CHECK(trial.summary()["test_loss"].get<double>() <= 2.29);
  const nlohmann::json last = trial.metrics().back();
  CHECK(last["step"] == step);
}

TEST_CASE("a goal without a target, a metric or test data is refused", "[run]") {
  const test::Trial trial;
  const auto refuses = [&](const test::Sets& sets, const std::string& why) {
    const test::Outcome check = trial.check(sets);
    INFO(check.out << check.err);
    CHECK(check.code == kExitConfig);
    CHECK_THAT(check.err, Contains(why));
  };
  refuses({"goal.metric=test_accuracy"}, "goal.target = 0 is not a valid accuracy");
  refuses({"goal.metric=test_accuracy", "goal.target=90"}, "at most 1");
  refuses({"goal.stop=true"}, "no metric to reach");
  refuses({"goal.metric=test_loss", "goal.target=1", "data.test="}, "need data.test");
  refuses({"goal.greatest_cost=10"}, "cost.node_hour");
}

}  // namespace echelon
