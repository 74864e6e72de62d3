// SPDX-License-Identifier: Apache-2.0
// Compares the verdict with the truth: records with their right answer, stated by hand. Each line of the tables is a
// question to which a person knows the answer; `says` and `never` are parts of the sentences. This file has
// repetitions, gains, quality and the single worker; test_verdict_findings.cpp has the others.
#include "tests/unit/report/verdict_case.hpp"

namespace echelon {
namespace {

using namespace test;

std::vector<Case> few_repetitions() {
  return {
      {"one repetition names no winner",
       made_record(1, {one(), many(4, 3.9)}),
       kUndecided,
       "",
       {"Not decided: 4 more repetitions are needed.", "at least 3 are needed to name a winner"},
       {"Yes"}},
      {"one repetition of times alone needs two more",
       made_record(1, {paced(1, 1), paced(4, 3.9)}),
       kUndecided,
       "",
       {"Not decided: 2 more repetitions are needed."}},
      {"one repetition of two equal settings", made_record(1, {one(), many(2, 1.02)}), kUndecided, ""},
      {"two repetitions name no winner",
       made_record(2, {paced(1, 1), paced(4, 3.9)}),
       kUndecided,
       "",
       {"Not decided: 1 more repetition is needed."}},
      {"three repetitions of times alone are enough for a clear gain",
       made_record(3, {paced(1, 1), paced(4, 3.9)}),
       kYes,
       "4 ranks",
       {"Yes: 4 ranks. 3.9x the samples/s of one worker (95 % interval 3.9"},
       {"at equal"}},
      {"three repetitions are too few to judge an accuracy",
       made_record(3, {one(), many(4, 3.9)}),
       kUndecided,
       "",
       {"Not decided: 2 more repetitions are needed.", "Its test accuracy is judged once there are 5 repetitions."}},
      {"three repetitions that reached the goal are enough",
       made_record(3, {one_to_goal(), to_goal(4, 3.9)}, {.goal = kGoal90}),
       kYes,
       "4 ranks",
       {"3.9x faster to test accuracy 0.9 than one worker (95 % interval 3.8 to 4.0), at 0.26x its cost."}},
      {"more ranks that are shown to be faster are not tied with one worker",
       made_record(3,
                   {one_to_goal("a"), one_to_goal("b"), one_to_goal("c"), one_to_goal("d"), one_to_goal("e"),
                    to_goal(4, 3.2, "a").hosts(4).seconds(31, 0.2)},
                   {.goal = kGoal90}),
       kYes, "4 ranks, a"},
      {"the same for samples/s",
       made_record(3, {paced(1, 1, "a"), paced(1, 1, "b"), paced(1, 1, "c"), paced(1, 1, "d"), paced(1, 1, "e"),
                       paced(4, 3.2, "a").hosts(4).rate(3200, 0.2)}),
       kYes, "4 ranks, a"},
      {"no run at all", made_record(0, {}), kUndecided, "", {"nothing was measured"}},
  };
}

std::vector<Case> gains() {
  return {
      {"four ranks at equal accuracy",
       made_record(5, {one(), many(4, 3.9)}),
       kYes,
       "4 ranks",
       {"Yes: 4 ranks. 3.9x the samples/s of one worker", "at equal test accuracy, at 0.26x its cost."}},
      {"two settings that are equal",
       made_record(5, {one(), many(2, 1.0)}),
       kNo,
       "",
       {"No: one worker.", "a gain below 1.10x does not count"}},
      {"twenty-seven settings that are equal", made_record(5, named(with_many(one(), 27, 1.0, 0.01))), kNo, ""},
      {"two equal settings in much noise",
       made_record(5, {one().rate(1000, 0.3), many(2, 1).rate(1000, 0.3)}),
       kUndecided,
       "",
       {"more repetitions"},
       {"Yes", "No:"}},
      {"a gain of 5 % is below the least gain", made_record(10, {one(), many(2, 1.05)}), kNo, "", {"1.05x"}},
      {"a gain of 5 % where 2 % is asked for", made_record(10, {one(), many(2, 1.05)}, {.rules = {.least_gain = 0.02}}),
       kYes, "2 ranks"},
      {"a gain of 30 % in noise of 40 %", made_record(5, {one().rate(1000, 0.4), many(2, 1.3).rate(1300, 0.4)}),
       kUndecided, ""},
      {"a gain of 30 % in noise of 5 %", made_record(5, {one().rate(1000, 0.05), many(2, 1.3).rate(1300, 0.05)}), kYes,
       "2 ranks"},
      {"k as slow as one is worse than one",
       made_record(5, {one(), many(2, 1.0).hosts(2)}),
       kNo,
       "",
       {"As fast as one worker, but at the cost of more ranks: 2 ranks (1.00x)."}},
      {"k slower than one",
       made_record(5, {one(), many(2, 0.6)}),
       kNo,
       "",
       {"Slower than one worker", "2 ranks (0.60x)"}},
      {"k slower than one while more ranks gain",
       made_record(5, {one(), many(2, 0.6, "slow"), many(4, 2)}),
       kYes,
       "4 ranks",
       {"Slower than one worker or no faster, at the cost of more ranks: 2 ranks, slow (0.60x)."}},
      {"a gain that costs more than it is worth is told with its cost",
       made_record(5, {one(), many(4, 2).hosts(4)}),
       kYes,
       "4 ranks",
       {"at 2.00x its cost."}},
  };
}

std::vector<Case> quality() {
  return {
      {"faster but far worse",
       made_record(5, {one().accuracy(0.928), many(4, 3.84).accuracy(0.662)}),
       kNo,
       "",
       {"Faster, but worse: 4 ranks: 3.8x the samples/s of one worker", "at the price of 0.266 test accuracy"},
       {"Yes"}},
      {"the fastest is worse, a slower one is as good",
       made_record(5, {one(), many(2, 1.9), many(4, 3.84).accuracy(0.7)}),
       kYes,
       "2 ranks",
       {"Faster, but worse: 4 ranks"}},
      {"worse by half a percent, within the margin",
       made_record(5, {one(), many(2, 1.9).accuracy(0.8955)}),
       kYes,
       "2 ranks",
       {"at most 0.009 worse than one worker's; this margin is 1 % of it (study.margin)"}},
      {"worse by half a percent, beyond a margin of 0.1 %",
       made_record(5, {one().accuracy(0.9, 0.0002), many(2, 1.9).accuracy(0.8955, 0.0002)},
                   {.rules = {.margin = 0.001}}),
       kNo, ""},
      {"worse by less than one worker's own seeds differ",
       made_record(20, {one().accuracy(0.9, 0.02), many(2, 1.9).accuracy(0.895, 0.01)}),
       kYes,
       "2 ranks",
       {"the standard deviation of its repetitions"}},
      {"an accuracy too noisy to tell",
       made_record(5, {one().accuracy(0.9, 0.03), many(2, 1.9).accuracy(0.9, 0.03)}),
       kUndecided,
       "",
       {"Its test accuracy is not yet shown to be as good."}},
      {"a loss that is 10 % higher",
       made_record(5, {Made(1).loss(0.5, 0.002), Made(2).rate(1900).loss(0.55, 0.002)}),
       kNo,
       "",
       {"at the price of 0.05 test loss"}},
      {"a loss that is equal",
       made_record(5, {Made(1).loss(0.5, 0.002), Made(2).rate(1900).loss(0.5, 0.002)}),
       kYes,
       "2 ranks",
       {"at equal test loss"}},
      {"faster and better",
       made_record(5, {one(), many(2, 1.9).accuracy(0.95)}),
       kYes,
       "2 ranks",
       {"the best test accuracy after 60,000 samples: 2 ranks (0.95, 0.05 better than one worker"}},
      {"weak scaling that loses accuracy",
       made_record(5, {one().accuracy(0.91), many(8, 7.5).accuracy(0.85)}),
       kNo,
       "",
       {"Faster, but worse: 8 ranks: 7.5x"}},
      {"paced runs have no quality",
       made_record(5, {paced(1, 1), paced(2, 1.8)}),
       kYes,
       "2 ranks",
       {"Quality was not compared"}},
      {"no setting of more ranks is as good and none as fast",
       made_record(5, {one(), many(2, 0.9), many(4, 3).accuracy(0.5)}), kNo, ""},
  };
}

std::vector<Case> single_worker() {
  const Made broken = Made(1, "broken").rate(1500).accuracy(0.081), learns = one("learns").accuracy(0.911);
  return {
      {"the single worker is not the fastest but the best that learns",
       made_record(5, {broken, learns, many(2, 3, "broken").accuracy(0.081), many(2, 1.9, "learns").accuracy(0.911)}),
       kYes,
       "2 ranks, learns",
       {"1.90x the samples/s of one worker"}},
      {"nothing but a broken setting is faster",
       made_record(5, {broken, learns, many(2, 3, "broken").accuracy(0.081)}),
       kNo,
       "",
       {"No: one worker (learns)."}},
      {"of two that learn the faster one is the single worker",
       made_record(5, {one("slow").rate(500), one("fast"), many(2, 1.05, "slow")}),
       kNo,
       "",
       {"No: one worker (fast)."}},
      {"a single worker that diverges in some seeds gives way",
       made_record(5, {one("wild").rate(2000).diverged(3), one("calm"), many(2, 1.9, "calm")}),
       kYes,
       "2 ranks, calm",
       {"1 rank, wild: 2 of 5 finished, 3 diverged."}},
      {"with a goal the single worker is the one that reaches it",
       made_record(5,
                   {Made(1, "fast").rate(5000).accuracy(0.094), one_to_goal("rate 0.05").seconds(0.144).accuracy(0.973),
                    to_goal(2, 1, "rate 0.05").seconds(0.163)},
                   {.goal = kGoal90}),
       kNo,
       "",
       {"No: one worker (rate 0.05)."},
       {"did not reach"}},
      {"no run on one rank",
       made_record(5, {many(2, 1.9), many(4, 3.8)}),
       kUndecided,
       "",
       {"no setting on one rank finished", "the samples/s of 2 ranks"}},
      {"one size alone",
       made_record(5, {one("a"), one("b").rate(1500)}),
       kUndecided,
       "",
       {"the study has only one size"}},
  };
}

}  // namespace

TEST_CASE("verdicts held to truth: few repetitions", "[report][study][verdict]") {
  for (const Case& c : few_repetitions()) check(c);
}

TEST_CASE("verdicts held to truth: gains", "[report][study][verdict]") {
  for (const Case& c : gains()) check(c);
}

TEST_CASE("verdicts held to truth: equal quality", "[report][study][verdict]") {
  for (const Case& c : quality()) check(c);
}

TEST_CASE("verdicts held to truth: the single worker", "[report][study][verdict]") {
  for (const Case& c : single_worker()) check(c);
}

}  // namespace echelon
