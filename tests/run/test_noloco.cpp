// SPDX-License-Identifier: Apache-2.0
// Strategy noloco as a user runs it: trained on real ranks, described, recorded, and resumed to the same bits and on
// other numbers of replicas.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/run/compare.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::train_run;

const test::Sets kSets = {"exchange.strategy=noloco", "exchange.noloco.period=5", "exchange.noloco.consensus_every=8",
                          "exchange.bucket_mb=0.01"};

}  // namespace

TEST_CASE("3 ranks train by noloco and resume to the same bits", "[run][noloco]") {
  const auto more = GENERATE(test::Sets{}, test::Sets{"exchange.noloco.group=3", "exchange.noloco.outer_pull=1"});
  const test::Sets sets = test::with(kSets, more);
  const test::Trial trial;
  const test::TrainedRun whole = train_run(trial, "whole", {{3}}, sets);
  INFO(whole.out);
  CHECK_THAT(whole.out, Contains("noloco, an outer step every 5 steps with momentum 0.5, rate 0.7") &&
                            Contains("in random groups of " + std::string(more.empty() ? "2" : "3") + " of 3"));
  CHECK(whole.summary()["test_accuracy"].get<double>() > 0.8);
  CHECK(whole.summary()["wire_bytes_per_step"].get<double>() ==
        Approx(whole.summary()["formula_bytes_per_step"].get<double>()).epsilon(1e-9));
  test::check_equal(train_run(trial, "cut", {{3, {"train.steps=24"}}, {3, {}, "from step 24:"}}, sets), whole,
                    {.part = ""});
}

TEST_CASE("noloco goes on with another number of replicas, and on one", "[run][noloco]") {
  const test::Trial trial;
  const test::TrainedRun run =
      train_run(trial, "trial", {{3, {"train.steps=20"}}, {1, {"train.steps=34"}, "a run of 3 replicas"}, {2}}, kSets);
  CHECK(run.summary()["test_accuracy"].get<double>() > 0.8);
}

TEST_CASE("groups whose slow weights drift apart are told of before the run", "[run][noloco]") {
  const test::Trial trial;
  const test::Sets fast = test::with(kSets, {"exchange.noloco.outer_momentum=0.9"});
  CHECK_THAT(trial.check(fast, {"--ranks", "6"}).out + trial.check(fast, {"--ranks", "6"}).err,
             Contains("drift apart") && Contains("outer_pull below 0.38"));
  const test::Outcome steady = trial.check(kSets, {"--ranks", "6"});
  CHECK_THAT(steady.out + steady.err, !Contains("drift apart") && Contains("noloco, weights to the others of random"));
}

}  // namespace echelon
