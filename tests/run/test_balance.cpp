// SPDX-License-Identifier: Apache-2.0
// data.balance = "speed" as a user runs it: one rank at half speed.
#include <catch2/catch.hpp>
#include <sstream>

#include "base/error.hpp"
#include "tests/run/compare.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/random.hpp"
#include "tests/support/rounding.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::train_run;

// Makes replica 1 need twice as long per sample.
test::Sets unequal(const test::Sets& more = {}) {
  const std::string pace = std::to_string(0.8 / test::patience());  // slower than the ops themselves in any build
  return test::with({"device.kind=reference", "device.dtype=f64", "device.pace_ms=-1", "device.paced_gflops=" + pace,
                     "device.pace_factors=[1, 2]", "data.sharding=record", "data.ragged=zero_weight"},
                    more);
}

}  // namespace

TEST_CASE("a slow replica takes fewer samples of a step, and the weights are the same", "[run][balance]") {
  const std::string strategy = GENERATE(as<std::string>(), "synchronous", "server");
  const test::Trial trial;
  const test::Sets sets = unequal({"exchange.strategy=" + strategy, "train.steps=20"});
  const test::TrainedRun even = train_run(trial, "even", {{2}}, sets);
  const test::TrainedRun balanced = train_run(trial, "balanced", {{2}}, test::with(sets, {"data.balance=speed"}));
  INFO(balanced.out);
  // "shared 32 16 instead of 24 24"; on a loaded machine the pace is not held, and fewer samples move.
  const std::size_t at = balanced.out.find("the next steps are shared ");
  REQUIRE(at != std::string::npos);
  std::istringstream numbers(balanced.out.substr(at + 26));
  int fast = 0, slow = 0;
  numbers >> fast >> slow;
  CHECK(fast + slow == 48);
  CHECK(fast > slow + 3);
  const std::vector<double> one = even.values("weights");
  const std::vector<double> other = balanced.values("weights");
  REQUIRE(one.size() == other.size());
  REQUIRE(one.size() > 100);
  for (std::size_t i = 0; i < one.size(); ++i) REQUIRE(other[i] == Approx(one[i]).epsilon(1e-8).margin(1e-10));
  CHECK(even.summary()["test_loss"].get<double>() ==
        Approx(balanced.summary()["test_loss"].get<double>()).epsilon(1e-8));
}

TEST_CASE("ranks on devices of two kinds train together as on one", "[run][balance]") {
  const test::Trial trial;
  const test::Sets sets = {"train.steps=12", "data.sharding=record", "data.ragged=zero_weight"};
  const test::Sets unlike_devices = {"device.kind=auto", "device.kinds=[\"onednn\", \"reference\"]"};
  const test::TrainedRun alike = train_run(trial, "alike", {{2}}, test::with(sets, {"device.kind=onednn"}));
  const test::TrainedRun unlike = train_run(trial, "unlike", {{2}}, test::with(sets, unlike_devices));
  const test::TrainedRun shared =
      train_run(trial, "shared", {{2}}, test::with(sets, test::with(unlike_devices, {"data.balance=speed"})));
  INFO(unlike.out);
  CHECK_THAT(unlike.out, Contains("1 thread, AVX") && Contains("; 1: ") && Contains("plain loops"));
  // Measures how far rounding alone drives two trainings apart: in f32, on either kind of device. That is far below the
  // 1e-2 and more that a sample lost or counted twice would cause.
  const test::TrainedRun plain =
      train_run(trial, "plain", {{2}}, test::with(sets, {"device.kind=reference", "device.dtype=f32"}));
  const std::vector<double> one = alike.values("weights");
  const double floor = test::relative_distance(plain.values("weights"), one);
  CHECK(floor > 0);
  CHECK(floor < 1e-3);
  for (const test::TrainedRun* run : {&unlike, &shared})
    CHECK(test::relative_distance(run->values("weights"), one) < test::rounding_bound(floor));
}

TEST_CASE("shares by speed are measured anew after a resume, also on other ranks", "[run][balance]") {
  const test::Trial trial;
  const test::Sets sets = unequal({"data.balance=speed", "checkpoint.every_epochs=1"});
  const test::TrainedRun run = train_run(trial, "trial", {{2, {"train.epochs=1"}}, {3, {}, "resuming  from step "}},
                                         test::with(sets, {"train.epochs=2"}));
  INFO(run.out);
  CHECK(run.summary()["steps"] == 34);
  CHECK_THAT(run.out, Contains("instead of 16 16 16"));
}

TEST_CASE("shares by speed are refused where they make no sense", "[run][balance]") {
  const test::Trial trial;
  const auto refused = [&](const test::Sets& more, const std::string& text) {
    const test::Outcome outcome = trial.check(test::with({"data.balance=speed"}, more));
    CHECK(outcome.code == kExitConfig);
    CHECK_THAT(outcome.err, Contains(text));
  };
  refused({"exchange.strategy=asynchronous"}, "queue");
  refused({"exchange.strategy=averaging"}, "steps of its own samples");
  refused({"data.sharding=file"}, "one order of all records");
}

}  // namespace echelon
