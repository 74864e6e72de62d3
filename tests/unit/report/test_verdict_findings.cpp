// SPDX-License-Identifier: Apache-2.0
// Compares the verdict with the truth, as test_verdict_cases.cpp does: diverged, failed and censored repetitions, ties,
// limits, environments and machines.
#include "tests/unit/report/verdict_case.hpp"

namespace echelon {
namespace {

using namespace test;

std::vector<Case> divergence() {
  return {
      {"three of five diverged, the survivors are fast",
       made_record(5, {one(), many(2, 3).diverged(3)}),
       kNo,
       "",
       {"2 ranks: 2 of 5 finished, 3 diverged."},
       {"Yes"}},
      {"all diverged on two ranks",
       made_record(5, {one(), many(2, 3).diverged(5)}),
       kNo,
       "",
       {"2 ranks: 0 of 5 finished, 5 diverged."}},
      {"all diverged everywhere",
       made_record(5, {one().diverged(5), many(2, 3).diverged(5)}),
       kUndecided,
       "",
       {"no repetition finished", "5 diverged"}},
      {"all diverged on one rank",
       made_record(5, {one().diverged(5), many(2, 3)}),
       kUndecided,
       "",
       {"no setting on one rank finished"}},
      {"with a goal, diverged repetitions count against it",
       made_record(5, {one_to_goal(), to_goal(2, 1.9).diverged(3)}, {.goal = kGoal90}),
       kNo,
       "",
       {"2 ranks: reached 2 of 5, 3 diverged."},
       {"reached 2 of 2"}},
      {"one diverges as often as the other", made_record(10, {one().diverged(1), many(2, 2).diverged(1)}), kYes,
       "2 ranks"},
      {"a failed repetition is missing, not a finding about the loss",
       made_record(10, {one(), many(2, 1.9).failed(1)}),
       kYes,
       "2 ranks",
       {"2 ranks: 9 of 10 finished, 1 failed."}},
      {"a size that failed in every repetition",
       made_record(5, {one(), many(4, 3.8), many(8, 1).failed(5)}),
       kYes,
       "4 ranks",
       {"8 ranks: 0 of 5 finished, 5 failed."}},
  };
}

std::vector<Case> censored() {
  return {
      {"one worker reaches the goal in some, four ranks in all",
       made_record(5, {one_to_goal().reached(3), to_goal(4, 3)}, {.goal = kGoal90}),
       kYes,
       "4 ranks",
       {"1 rank: reached 3 of 5."}},
      {"one worker never reaches it",
       made_record(5, {one_to_goal().reached(0), to_goal(4, 3)}, {.goal = kGoal90}),
       kYes,
       "4 ranks",
       {"It reached test accuracy 0.9 more often than one worker"}},
      {"nobody reaches it",
       made_record(5, {one(), many(4, 3.8)}, {.goal = kGoal90}),
       kYes,
       "4 ranks",
       {"No setting reached test accuracy 0.9: speeds are in samples/s"}},
      {"four ranks miss it once",
       made_record(5, {one_to_goal(), to_goal(4, 3).reached(4)}, {.goal = kGoal90}),
       kNo,
       "",
       {"No setting with more ranks reached test accuracy 0.9 in every repetition.", "4 ranks: reached 4 of 5."}},
      {"both miss it as often", made_record(5, {one_to_goal().reached(4), to_goal(4, 3).reached(4)}, {.goal = kGoal90}),
       kUndecided, ""},
      {"the goal is reached later by more ranks", made_record(5, {one_to_goal(), to_goal(8, 0.8)}, {.goal = kGoal90}),
       kNo, ""},
      {"samples to the goal: fewer, and each of them slower",
       made_record(5, {one_to_goal(), to_goal(2, 2)}, {.goal = kGoal90}),
       kYes,
       "2 ranks",
       {"the fewest samples to test accuracy 0.9"}},
  };
}

std::vector<Case> ties() {
  return {
      {"two ways that are equal are a tie",
       made_record(5, {one(), many(4, 3.8, "ring"), many(4, 3.8, "tree")}),
       kYes,
       "4 ranks, ring",
       {"Tied with 4 ranks, tree"}},
      {"of a tie the simpler way",
       made_record(5, {one(), many(4, 3.8, "int8").codec("int8"), many(4, 3.8, "plain")}),
       kYes,
       "4 ranks, plain",
       {"Tied with 4 ranks, int8"}},
      {"of a tie the one without servers",
       made_record(5, {one(), many(4, 3.8, "served").servers(1), many(4, 3.8, "summed")}), kYes, "4 ranks, summed"},
      {"of a tie the one of fewer ranks",
       made_record(5, {one(), many(4, 3.8), many(8, 3.8)}),
       kYes,
       "4 ranks",
       {"Tied with 8 ranks", "The gain ends at 4 ranks: 8 ranks reach only 1.00x its speed"}},
      {"of a tie the cheapest", made_record(5, {one(), many(4, 3.8, "spread").hosts(4), many(4, 3.8, "compact")}), kYes,
       "4 ranks, compact"},
      {"5 % more is no reason for twice the ranks", made_record(5, {one(), many(4, 3.8), many(8, 4.0)}), kYes,
       "4 ranks"},
      {"40 % more is",
       made_record(5, {one(), many(4, 3.8), many(8, 5.3)}),
       kYes,
       "8 ranks",
       {"The gain does not end at 8 ranks, the largest size that was run", "the fewest ranks that gain: 4 ranks"},
       {"Tied"}},
      {"six settings of one accuracy are a tie",
       made_record(5, {one("a"), one("b"), many(2, 1.9, "a"), many(2, 1.9, "b"), many(4, 3.8, "a"), many(4, 3.8, "b")}),
       kYes,
       "4 ranks, a",
       {"tied with 1 rank, a"}},
  };
}

std::vector<Case> limits() {
  const GoalConfig deadline = {.metric = GoalMetric::test_accuracy, .target = 0.9, .deadline_h = 60.0 / 3600};
  return {
      {"a deadline that more ranks keep",
       made_record(5, {one_to_goal(), to_goal(2, 1.9)}, {.goal = deadline}),
       kYes,
       "2 ranks",
       {"the lowest cost by the deadline: 2 ranks"}},
      {"a deadline that nobody keeps",
       made_record(5, {one_to_goal(), to_goal(2, 1.3)}, {.goal = deadline}),
       kYes,
       "2 ranks",
       {"the lowest cost by the deadline: no setting qualifies."}},
      {"one worker is cheapest but late",
       made_record(5, {one_to_goal(), to_goal(2, 1.9).hosts(2), to_goal(4, 2.6).hosts(4)}, {.goal = deadline}),
       kYes,
       "4 ranks",
       {"the lowest cost to test accuracy 0.9: 1 rank", "the lowest cost by the deadline: 2 ranks"}},
      {"the fastest costs more than the budget",
       made_record(5, {one_to_goal(), to_goal(2, 1.9).hosts(2), to_goal(8, 4).hosts(8)},
                   {.goal = {.metric = GoalMetric::test_accuracy, .target = 0.9, .greatest_cost = 0.04},
                    .cost = {.node_hour = 1}}),
       kYes,
       "2 ranks",
       {"1.05x its cost"}},
      {"the fastest is below the least efficiency",
       made_record(5, {one(), many(2, 1.9), many(8, 4)}, {.goal = {.least_efficiency = 0.8}}), kYes, "2 ranks"},
      {"the best accuracy in a given time",
       made_record(5, {one().curve(curve(60, 0.5, 0.9)), many(4, 3.8).curve(curve(16, 0.5, 0.9))}),
       kYes,
       "4 ranks",
       {"the best test accuracy in 60.0 s: 4 ranks (0.9"}},
      {"the price of an hour is told",
       made_record(5, {one(), many(2, 1.9)}, {.cost = {.node_hour = 3.6, .currency = "CHF"}}),
       kYes,
       "2 ranks",
       {"CHF"}},
  };
}

std::vector<Case> circumstances() {
  const auto in = [](Made made, const char* environment) { return made.environment(environment); };
  const std::vector<double> drift = {1, 0.6, 1.3, 0.8, 1.0};
  std::vector<ControlRate> controls;
  for (int i = 0; i < 5; ++i) controls.push_back({"", i + 1, 100 * drift[static_cast<std::size_t>(i)]});
  return {
      {"two environments with two answers",
       made_record(5, {in(one(), "lan"), in(many(2, 1.9), "lan"), in(one(), "wan"), in(many(2, 0.5), "wan")}),
       kYes,
       "2 ranks",
       {"Yes in 1 of 2 environments, no in 1", "lan: Yes: 2 ranks.", "wan: No: one worker."}},
      {"one worker of a slow machine is not that of a fast one",
       made_record(5, {in(one(), "even"), in(many(2, 1.9), "even"), in(one().rate(250), "slow"),
                       in(many(2, 1).rate(475), "slow")}),
       kYes,
       "2 ranks",
       {"slow: Yes: 2 ranks. 1.90x the samples/s of one worker"}},
      {"an environment that is not decided",
       made_record(5, {in(one(), "lan"), in(many(2, 1.9), "lan"), in(one().rate(1000, 0.4), "wan"),
                       in(many(2, 1.2).rate(1200, 0.4), "wan")}),
       kUndecided, "2 ranks"},
      {"a machine that drifts is the same within a round",
       made_record(5, {one(), many(4, 3.8)}, {.controls = controls, .machine = drift}),
       kYes,
       "4 ranks",
       {"The speed of the machine changed by more than 5 %", "in rounds 2 (0.60x), 3 (1.30x), 4 (0.80x)"}},
      {"a machine that stays is not mentioned",
       made_record(3, {paced(1, 1), paced(2, 1.9)}, {.controls = {{"", 1, 100}, {"", 2, 101}, {"", 3, 99}}}),
       kYes,
       "2 ranks",
       {},
       {"The speed of the machine changed"}},
      {"a budget that ended within a round",
       made_record(5, {paced(1, 1), paced(2, 1.9), paced(4, 3.8).repetitions(4)}),
       kYes,
       "4 ranks",
       {"Repetitions are missing: 4 ranks have fewer than 5"}},
      {"a size of which one repetition ran beside many",
       made_record(5, {paced(1, 1), paced(2, 1.9), paced(4, 9).repetitions(1)}), kYes, "2 ranks"},
  };
}

}  // namespace

TEST_CASE("verdicts held to truth: diverged and failed repetitions", "[report][study][verdict]") {
  for (const Case& c : divergence()) check(c);
}

TEST_CASE("verdicts held to truth: goals not reached", "[report][study][verdict]") {
  for (const Case& c : censored()) check(c);
}

TEST_CASE("verdicts held to truth: ties", "[report][study][verdict]") {
  for (const Case& c : ties()) check(c);
}

TEST_CASE("verdicts held to truth: deadlines and budgets", "[report][study][verdict]") {
  for (const Case& c : limits()) check(c);
}

TEST_CASE("verdicts held to truth: environments, machines, missing repetitions", "[report][study][verdict]") {
  for (const Case& c : circumstances()) check(c);
}

}  // namespace echelon
