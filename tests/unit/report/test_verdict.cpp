// SPDX-License-Identifier: Apache-2.0
// A study's verdict, from runs made up with known times.
#include <catch2/catch.hpp>
#include <cmath>

#include "report/verdict.hpp"
#include "report/writers/study.hpp"
#include "tests/support/process.hpp"
#include "tests/unit/report/made_runs.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::all_lines;
using test::find;
using test::made;
using test::repeated;
using test::write_metrics;

}  // namespace

TEST_CASE("the verdict: whether, how, how few, how many, and the single worker", "[report][study]") {
  const auto runs = repeated({made("ring", 1, 0.016, 0), made("ring", 2, 0.008, 0.001), made("ring", 4, 0.004, 0.004),
                              made("averaging", 1, 0.016, 0), made("averaging", 2, 0.008, 0.0001, 0.85),
                              made("averaging", 4, 0.004, 0.0002, 0.8), made("slow", 2, 0.008, 0.02)});
  const Evidence evidence = make_evidence(runs, {}, {});
  const StudyVerdict verdict = make_verdict(evidence);
  const std::string text = all_lines(verdict);
  INFO(text);
  CHECK_THAT(text,
             Catch::StartsWith("Yes: 2 ranks, ring. 1.64x the samples/s of one worker (95 % interval 1.63 to 1.65) "
                               "at equal test accuracy, at 0.75x its cost. Tied with 4 ranks, ring"));
  CHECK_THAT(text,
             Contains("If you want the most samples/s at equal test accuracy: 4 ranks, ring (") && Contains("1.80x"));
  CHECK_THAT(text, Contains("computes for 89 % of its step (minimum 70 %; ") &&
                       Contains(" samples/s): it need not be improved first."));
  CHECK_THAT(text, Contains("Faster, but worse: 4 ranks, averaging: 2.9x the samples/s of one worker") &&
                       Contains("at the price of 0.1 test accuracy"));
  CHECK_THAT(text, Contains("the fewest ranks that gain: 2 ranks, ring") && Contains("1.64x"));
  CHECK_THAT(text, Contains("Slower than one worker or no faster, at the cost of more ranks: 2 ranks, slow (0.60x)"));
  CHECK_THAT(text, Contains("the most samples/s at any quality: 4 ranks, averaging"));
  CHECK_THAT(text,
             Contains("If you want the best test accuracy after 704 samples: 2 ranks, ring (0.9, not distinguishable "
                      "from one worker (95 % interval +0 to +0)); tied with 1 rank, ring; 1 rank, averaging; "));
  CHECK(verdict.goals.empty());
  CHECK(verdict.met());
}

TEST_CASE("where nothing gains, one worker is the answer; where data are late, they come first", "[report][study]") {
  LabelledRun late = made("", 1, 0.004, 0);
  late.run.time_split_s.data_wait_s = 11 * 0.014;
  late.run.time_split_s.total_s += 11 * 0.014;
  late.run.samples_per_s_overall = 64 / 0.02;
  LabelledRun two = made("", 2, 0.015, 0.005);
  two.run.samples_per_s_overall = late.run.samples_per_s_overall * 1.005;
  const StudyVerdict verdict = make_verdict(make_evidence(repeated({late, two}), {}, {}));
  const std::string text = all_lines(verdict);
  INFO(text);
  CHECK_THAT(text, Contains("Improve the single worker first: it computes for 20 % of its step (minimum 70 %) and "
                            "waits for data for 70 %; up to 5.0x can be gained."));
  CHECK_THAT(text, Catch::StartsWith("No: one worker."));
  CHECK(verdict.recommended == -1);
  CHECK_THAT(all_lines(make_verdict(make_evidence({}, {}, {}))), Contains("no run of the study finished"));
}

TEST_CASE("ranks that serve count as ranks: one worker with a server is no single worker", "[report][study]") {
  LabelledRun served = made("server", 1, 0.004, 0.0001);
  served.run.servers = 1;
  const Evidence evidence = make_evidence(repeated({made("alone", 1, 0.008, 0), served}), {}, {});
  CHECK(evidence.best_single().label == "alone");
  CHECK(find(evidence, "server", 1).row.efficiency == Approx(0.010 / 0.0061 / 2).epsilon(0.01));
  CHECK_THAT(all_lines(make_verdict(evidence)), Catch::StartsWith("Yes: 2 ranks, server."));
}

TEST_CASE("the knee is the size after which more ranks bring little", "[report][study]") {
  const StudyVerdict verdict = make_verdict(
      make_evidence(repeated({made("", 1, 0.016, 0), made("", 2, 0.008, 0.001), made("", 4, 0.0079, 0.0005)}), {}, {}));
  CHECK_THAT(all_lines(verdict),
             Contains("The gain ends at 2 ranks: 4 ranks reach only 1.06x its speed (95 % interval"));
}

TEST_CASE("goals are met by one setting that keeps all limits, or missed by name", "[report][study]") {
  const test::TempFolder folder;
  std::vector<LabelledRun> runs = {made("", 1, 0.016, 0), made("", 2, 0.008, 0.001), made("", 4, 0.004, 0.001)};
  runs[0].run.folder = write_metrics(folder, "run-1", {0.5, 0.7, 0.9});
  runs[1].run.folder = write_metrics(folder, "run-2", {0.5, 0.9, 0.95});
  runs[2].run.folder = write_metrics(folder, "run-4", {0.5, 0.6, 0.61});
  GoalConfig goal{.metric = GoalMetric::test_accuracy, .target = 0.7, .most_samples = 1.2, .deadline_h = 0.05};
  const CostConfig cost{.node_hour = 36};
  const auto evidence_of = [&](const GoalConfig& asked) { return make_evidence(repeated(runs), asked, cost); };
  const Evidence evidence = evidence_of(goal);
  CHECK(find(evidence, "", 4).reached == 0);
  CHECK(evidence.price(find(evidence, "", 2)) == Approx(1.751).epsilon(1e-3));  // 175.1 s on one host
  const StudyVerdict met = make_verdict(evidence);
  INFO(all_lines(met));
  CHECK(met.met());
  CHECK_THAT(all_lines(met), Catch::StartsWith("Yes: 2 ranks. 1.14x faster to test accuracy 0.7 than one worker"));
  CHECK_THAT(all_lines(met), Contains("met 2 ranks: 0.88x the samples of the single worker (limit: 1.2)"));
  CHECK_THAT(all_lines(met), Contains("met 2 ranks: test_accuracy 0.7 reached 5 of 5"));
  CHECK_THAT(all_lines(met), Contains("4 ranks: reached 0 of 5."));
  goal.deadline_h = 0.01;
  const StudyVerdict missed = make_verdict(evidence_of(goal));
  CHECK_FALSE(missed.met());
  CHECK_THAT(all_lines(missed), Contains("missed 2 ranks: "));
  goal.target = 0.99, goal.greatest_cost = 3;
  const Evidence hopeless = evidence_of(goal);
  const StudyVerdict never = make_verdict(hopeless);
  CHECK_FALSE(never.met());
  for (const char* line : {"reached 0 of 5", "samples to the target unknown (limit: 1.2x those",
                           "cost to the target unknown (limit: 3 EUR)", "time to the target unknown (limit: 36.0"})
    CHECK_THAT(all_lines(never), Contains(line));
  CHECK_THAT(all_lines(never) + study_text(hopeless, never), !Contains("nan"));
  const std::string page = study_markdown(evidence, met, {"a study", "echelon scale x", "2026", "1", "abc"});
  CHECK_THAT(page, Contains("\n**Yes: 2 ranks.**\n") && Contains("\n* met: 2 ranks: ") && Contains("EUR |") &&
                       Contains("0 of 5"));
  CHECK_THAT(study_text(evidence, met), Contains("Loss budget") && Contains("100.0"));
  Evidence small = evidence;
  small.settings[0].budget.input = -1e-4;
  small.settings[1].budget.input = 0.01;
  CHECK_THAT(study_text(small, met), Contains("input") && !Contains("-0.0"));
}

TEST_CASE("ranks that did not keep their pace are named before the answer", "[report][study]") {
  LabelledRun one = made("ring", 1, 0.008, 0), two = made("ring", 2, 0.004, 0.001),
              four = made("ring", 4, 0.002, 0.001);
  for (LabelledRun* run : {&one, &two, &four}) {
    run->run.pace_s = {0.01};
    run->run.pace_over_steps = {0};
    run->run.pace_worst = {1.0};
  }
  CHECK_THAT(all_lines(make_verdict(make_evidence({one, two, four}, {}, {}))), !Contains("pace"));
  two.run.pace_over_steps = {0, 3};
  two.run.pace_worst = {1.02, 1.2};
  four.run.pace_over_steps = {4, 5, 5, 4};
  four.run.pace_worst = {1.5, 1.7, 1.6, 1.5};
  const std::string text = all_lines(make_verdict(make_evidence({one, two, four, four}, {}, {})));
  INFO(text);
  CHECK_THAT(text, Contains("2 of 3 settings took longer than their pace (device.pace_ms): the worst is 4 ranks, ring, "
                            "in 45 % of a rank's steps, the longest of which took 1.7x the pace."));
}

TEST_CASE("a single worker far below its peak is told where to look", "[report][study]") {
  LabelledRun one = made("", 1, 0.016, 0);
  one.run.forward_flops = 1e6;
  one.run.backward_flops = 2e6;
  one.run.peak_flops = 3e6 * 64 / 0.016 / 0.42;
  const std::string below = all_lines(make_verdict(make_evidence({one}, {}, {})));
  INFO(below);
  CHECK_THAT(below, Contains("computes for 89 % of its step (minimum 70 %; ") && !Contains("it need not be improved"));
  CHECK_THAT(
      below,
      Contains("It computes at 42 % of its peak rate (minimum 50 %, a rule of thumb; memory traffic bounds small "
               "models): see `echelon bench step`."));
  one.run.peak_flops *= 0.7;
  const std::string above = all_lines(make_verdict(make_evidence({one}, {}, {})));
  CHECK_THAT(
      above,
      Contains(
          "it need not be improved first.\nIt computes at 60 % of its peak rate (minimum 50 %, a rule of thumb).\n"));
  one.run.time_split_s.forward_s = one.run.time_split_s.backward_s = 0;
  CHECK_THAT(all_lines(make_verdict(make_evidence({one}, {}, {}))), !Contains("inf") && !Contains("nan"));
}

namespace {

// One worker trained 1,920 samples in 240 s, two ranks 1,024 in 100 s, and four ranks on two hosts 1,920 in 120 s.
std::vector<LabelledRun> unequal(const test::TempFolder& folder) {
  std::vector<LabelledRun> runs = {made("", 1, 0.016, 0), made("", 2, 0.008, 0.001), made("", 4, 0.004, 0.001)};
  runs[0].run.folder = write_metrics(folder, "run-1", {0.5, 0.7, 0.9}, 10, 80);
  runs[1].run.folder = write_metrics(folder, "run-2", {0.6, 0.8}, 8, 50);
  runs[2].run.folder = write_metrics(folder, "run-4", {0.4, 0.6, 0.75}, 10, 40);
  runs[0].run.steps = runs[2].run.steps = 30;
  runs[1].run.steps = 16;
  return runs;
}

std::string sentences(const std::vector<LabelledRun>& runs, const GoalConfig& goal = {}, const CostConfig& cost = {}) {
  return all_lines(make_verdict(make_evidence(repeated(runs), goal, cost)));
}

}  // namespace

TEST_CASE("runs that end after different samples are compared where the first one ends", "[report][study]") {
  const test::TempFolder folder;
  std::vector<LabelledRun> runs = unequal(folder);
  const std::string text = sentences(runs);
  INFO(text);
  CHECK_THAT(text, Contains("the best test accuracy after 1,024 samples: 2 ranks (0.8, 0.26 better than one worker"));
  CHECK_THAT(text, Contains("the best test accuracy in 100.1 s: 2 ranks (0.8, 0.3 better than one worker"));
  CHECK_THAT(text, Contains("the lowest cost for 1,024 samples at equal test accuracy: 2 ranks (0.0278 node-hours, "));
  const std::string late = sentences(runs, {.deadline_h = 0.05}, {.node_hour = 36});
  INFO(late);
  CHECK_THAT(late, Contains("the best test accuracy by the deadline of 3 min: 2 ranks (0.8, 0.0503 better than one"));
  CHECK_THAT(late, Contains("the lowest cost for 1,024 samples at equal test accuracy: 2 ranks (1 EUR"));
  runs[0].run.folder = runs[2].run.folder = "";
  CHECK_THAT(sentences(runs), !Contains("the best test accuracy") && !Contains("nan") && !Contains("inf"));
}

TEST_CASE("a setting that ends before others are evaluated does not decide where they are compared",
          "[report][study]") {
  const test::TempFolder folder;
  std::vector<LabelledRun> runs = unequal(folder);
  runs.push_back(made("short", 2, 0.008, 0.001));
  runs.back().run.folder = write_metrics(folder, "run-short", {0.3}, 5, 10);
  runs.back().run.steps = 5;
  const Evidence evidence = make_evidence(repeated(runs), {}, {});
  CHECK(evidence.common_point(&Evaluation::samples, "") == Approx(1024));
  CHECK(evidence.common_point(&Evaluation::seconds, "") == Approx(100.1));
  CHECK(std::isnan(evidence.common_point(&Evaluation::samples, "elsewhere")));
  CHECK(std::isnan(evidence.figure_at(find(evidence, "short", 2), &Evaluation::samples, 1024).median));
  CHECK(evidence.figure_at(find(evidence, "short", 2), &Evaluation::seconds, 100.1).median == Approx(0.3));
}

TEST_CASE("of equally long runs the cheapest is told without a goal, and the least loss is best", "[report][study]") {
  std::vector<LabelledRun> runs = {made("", 1, 0.016, 0), made("", 2, 0.008, 0.001), made("", 4, 0.004, 0.004)};
  for (LabelledRun& run : runs) {
    run.run.test_loss = 0.5 - 0.1 * run.run.ranks;
    run.run.test_accuracy = kUnknown;
    run.run.time_split_s.total_s *= 1000;
  }
  const std::string text = sentences(runs);
  INFO(text);
  CHECK_THAT(text, Contains("the best test loss after 704 samples: 4 ranks (0.1, 0.3 better than one worker"));
  CHECK_THAT(text,
             Contains("the lowest cost for 704 samples at equal test loss: 2 ranks (0.0367 node-hours"));  // 132 s
}

TEST_CASE("fewest samples, cheapest, and cheapest by the deadline, to the target", "[report][study]") {
  const test::TempFolder folder;
  GoalConfig goal{.metric = GoalMetric::test_accuracy, .target = 0.7, .deadline_h = 0.025};
  const std::string text = sentences(unequal(folder), goal);
  INFO(text);
  CHECK_THAT(text,
             Contains("the fewest samples to test accuracy 0.7: 2 ranks (896 samples, 1.43x fewer than one worker"));
  CHECK_THAT(text, Contains("the lowest cost to test accuracy 0.7: 2 ranks (0.0243 node-hours"));  // 87.6 s
  CHECK_THAT(text, Contains("the lowest cost by the deadline: 2 ranks (0.0243 node-hours"));
  goal.deadline_h = 0.02;
  CHECK_THAT(sentences(unequal(folder), goal), Contains("the lowest cost by the deadline: no setting qualifies."));
  std::vector<LabelledRun> fails = unequal(folder);
  fails[0].run.folder = write_metrics(folder, "run-1", {0.5, 0.6, 0.65}, 10, 80);
  const std::string alone = sentences(fails, goal);
  INFO(alone);
  CHECK_THAT(alone, Contains("It reached test accuracy 0.7 more often than one worker"));
  CHECK_THAT(alone, Contains("the fewest samples to test accuracy 0.7: 2 ranks (896 samples)"));
  CHECK_THAT(alone, !Contains("nan") && !Contains("inf"));
}

TEST_CASE("the deadline may rule the cheapest setting out", "[report][study]") {
  const test::TempFolder folder;
  std::vector<LabelledRun> runs = unequal(folder);
  runs[1].run.folder = write_metrics(folder, "run-2", {0.3, 0.8}, 8, 70);
  const GoalConfig goal{.metric = GoalMetric::test_accuracy, .target = 0.7, .deadline_h = 0.033};  // 119 s
  const std::string text = sentences(runs, goal);
  INFO(text);
  CHECK_THAT(text, Contains("the lowest cost to test accuracy 0.7: 2 ranks (0.037 node-hours"));
  CHECK_THAT(text, Contains("the lowest cost by the deadline: 4 ranks (0.0593 node-hours"));
}

TEST_CASE("least efficiency and greatest cost are judged, met and missed", "[report][study]") {
  const auto judged = [](const GoalConfig& goal) {
    const std::vector<LabelledRun> runs = {made("", 1, 0.016, 0), made("", 2, 0.014, 0.001)};
    return all_lines(make_verdict(make_evidence(repeated(runs), goal, {.node_hour = 36000}, {.least_gain = 0.02})));
  };
  CHECK_THAT(judged({.least_efficiency = 0.5}), Contains("met 2 ranks: efficiency 53 % (at least 50 % required)\n"));
  CHECK_THAT(judged({.least_efficiency = 0.6}), Contains("met 1 rank: efficiency 100 % (at least 60 % required)\n"));
  CHECK_THAT(judged({.greatest_cost = 5}), Contains("met 2 ranks: 2.98 EUR (limit: 5 EUR)\n"));
  CHECK_THAT(judged({.greatest_cost = 1}), Contains("missed 2 ranks: 2.98 EUR (limit: 1 EUR)\n"));
  CHECK_THAT(
      judged({.least_efficiency = 0.6, .greatest_cost = 3}),
      Contains("missed 2 ranks: efficiency 53 % (at least 60 % required)\nmet 2 ranks: 2.98 EUR (limit: 3 EUR)\n"));
}

}  // namespace echelon
