// A study's verdict: from runs made up with known times.
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
using test::thrice;
using test::write_metrics;

}  // namespace

TEST_CASE("the verdict: the single worker first, whether, how few, how many, and which", "[report][study]") {
  const auto runs = thrice({made("ring", 1, 0.016, 0), made("ring", 2, 0.008, 0.001), made("ring", 4, 0.004, 0.004),
                            made("averaging", 1, 0.016, 0), made("averaging", 2, 0.008, 0.0001, 0.85),
                            made("averaging", 4, 0.004, 0.0002, 0.8), made("slow", 2, 0.008, 0.02)});
  const Evidence evidence = make_evidence(runs, {}, {});
  const StudyVerdict verdict = make_verdict(evidence);
  const std::string text = all_lines(verdict);
  INFO(text);
  CHECK_THAT(
      text, Contains("computes for 89 % of its step (floor 70 %; ") && Contains(" samples/s): nothing to mend first."));
  CHECK_THAT(text, Contains("Distribute: the least time is that of averaging on 4 ranks"));
  CHECK_THAT(text, Contains("Its test accuracy after 704 samples: 0.8 (0.8 to 0.8); one worker's: 0."));
  CHECK_THAT(text, Contains("Fewest ranks that gain: averaging on 2 ranks") && Contains("on 1 host"));
  CHECK_THAT(text, Contains("Up to 4 ranks at least"));
  CHECK_THAT(text, Contains("No better than one worker, at their ranks' cost: slow on 2 ranks (0.60x)"));
  CHECK_THAT(text, Contains("Most samples/s: averaging on 4 ranks"));
  CHECK_THAT(text, Contains("Best test accuracy after 704 samples: ring on 2 ranks (0.9); one worker 0.9."));
  CHECK(evidence.settings[static_cast<std::size_t>(verdict.recommended)].label == "averaging");
  CHECK(verdict.goals.empty());
  CHECK(verdict.met());
}

TEST_CASE("where nothing gains, one worker is the answer; where data are late, they come first", "[report][study]") {
  LabelledRun late = made("", 1, 0.004, 0);
  late.run.time_split_s.data_wait_s = 11 * 0.014;
  late.run.time_split_s.total_s += 11 * 0.014;
  late.run.samples_per_s.median = 64 / 0.02;
  LabelledRun two = made("", 2, 0.015, 0.005);
  two.run.samples_per_s.median = late.run.samples_per_s.median * 1.005;  // within the spread
  const StudyVerdict verdict = make_verdict(make_evidence(thrice({late, two}), {}, {}));
  const std::string text = all_lines(verdict);
  INFO(text);
  CHECK_THAT(
      text,
      Contains(
          "Mend the single worker first: it computes for 20 % of its step (floor 70 %) and waits for data for 70 %; up "
          "to 5.0x to gain."));
  CHECK_THAT(text, Contains("Do not distribute"));
  CHECK(verdict.recommended == -1);
  CHECK_THAT(all_lines(make_verdict(make_evidence({}, {}, {}))), Contains("No run of the study finished"));
}

TEST_CASE("ranks that serve count as ranks: one worker with a server is no single worker", "[report][study]") {
  LabelledRun served = made("server", 1, 0.004, 0.0001);
  served.run.servers = 1;
  const Evidence evidence = make_evidence({made("alone", 1, 0.008, 0), served}, {}, {});
  CHECK(evidence.best_single().label == "alone");
  CHECK(find(evidence, "server", 1).row.efficiency == Approx(0.010 / 0.0061 / 2));
  CHECK_THAT(all_lines(make_verdict(evidence)), Contains("Distribute: the least time is that of server on 2 ranks"));
}

TEST_CASE("the knee is the size after which more ranks bring little", "[report][study]") {
  const StudyVerdict verdict = make_verdict(
      make_evidence(thrice({made("", 1, 0.016, 0), made("", 2, 0.008, 0.001), made("", 4, 0.0079, 0.0005)}), {}, {}));
  CHECK_THAT(all_lines(verdict), Contains("Up to 2 ranks: 4 ranks bring 1.06x of that"));
}

TEST_CASE("goals are met by one setting that keeps all limits, or missed by name", "[report][study]") {
  const test::TempFolder folder;
  std::vector<LabelledRun> runs = {made("", 1, 0.016, 0), made("", 2, 0.008, 0.001), made("", 4, 0.004, 0.001)};
  runs[0].run.folder = write_metrics(folder, "run-1", {0.5, 0.7, 0.9});
  runs[1].run.folder = write_metrics(folder, "run-2", {0.5, 0.9, 0.95});
  runs[2].run.folder = write_metrics(folder, "run-4", {0.5, 0.6, 0.61});
  GoalConfig goal{.metric = GoalMetric::test_accuracy, .target = 0.7, .most_samples = 1.2, .deadline_h = 0.05};
  const CostConfig cost{.node_hour = 36};
  const Evidence evidence = make_evidence(runs, goal, cost);
  CHECK(find(evidence, "", 4).reached == 0);
  CHECK(evidence.price(find(evidence, "", 2)) == Approx(1.751).epsilon(1e-3));  // 175.1 s on one host
  const StudyVerdict met = make_verdict(evidence);
  INFO(all_lines(met));
  CHECK(met.met());
  CHECK_THAT(all_lines(met), Contains("the least time is that of 2 ranks (") && Contains("to the target, 1.14x)"));
  CHECK_THAT(all_lines(met), Contains("met 2 ranks: 0.88x the samples of the fewest ranks, at most 1.2"));
  goal.deadline_h = 0.01;
  const StudyVerdict missed = make_verdict(make_evidence(runs, goal, cost));
  CHECK_FALSE(missed.met());
  CHECK_THAT(all_lines(missed), Contains("missed 2 ranks: "));
  goal.target = 0.99, goal.greatest_cost = 3;
  const Evidence hopeless = make_evidence(runs, goal, cost);
  const StudyVerdict never = make_verdict(hopeless);
  CHECK_FALSE(never.met());
  for (const char* line : {"reached by 0 of 1 repetition", "samples to the target unknown, at most 1.2x those",
                           "cost to the target unknown, at most 3 EUR", "time to the target unknown, at most 36.0"})
    CHECK_THAT(all_lines(never), Contains(line));
  CHECK_THAT(all_lines(never) + study_text(hopeless, never), !Contains("nan"));
  const std::string page = study_markdown(evidence, met, {"a study", "echelon scale x", "2026", "1", "abc"});
  CHECK_THAT(page, Contains("## Verdict") && Contains("goal **met**") && Contains("EUR |") && Contains("0 of 1"));
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
  CHECK_THAT(text, Contains("2 of 3 settings took longer than their pace (device.pace_ms): worst ring on 4 ranks, 45 % "
                            "of a rank's steps, the longest 1.7x."));
  CHECK(text.find("longer than their pace") < text.find("Distribute"));
}

TEST_CASE("a single worker far below its peak is told where to look", "[report][study]") {
  LabelledRun one = made("", 1, 0.016, 0);
  one.run.forward_flops = 1e6;
  one.run.backward_flops = 2e6;
  one.run.peak_flops = 3e6 * 64 / 0.016 / 0.42;
  const std::string below = all_lines(make_verdict(make_evidence({one}, {}, {})));
  INFO(below);
  CHECK_THAT(below, Contains("computes for 89 % of its step (floor 70 %; ") && !Contains("nothing to mend"));
  CHECK_THAT(below,
             Contains("It computes at 42 % of its peak (floor 50 %, a rule of thumb; memory traffic bounds small "
                      "models): see `echelon bench step`."));
  one.run.peak_flops *= 0.7;
  const std::string above = all_lines(make_verdict(make_evidence({one}, {}, {})));
  CHECK_THAT(above,
             Contains("nothing to mend first.\nIt computes at 60 % of its peak (floor 50 %, a rule of thumb).\n"));
  one.run.time_split_s.forward_s = one.run.time_split_s.backward_s = 0;
  CHECK_THAT(all_lines(make_verdict(make_evidence({one}, {}, {}))), !Contains("inf") && !Contains("nan"));
}

namespace {

// One worker trained 1,920 samples in 240 s, two ranks 1,024 in 100 s, four ranks on two hosts 1,920 in 120 s.
std::vector<LabelledRun> unequal(const test::TempFolder& folder) {
  std::vector<LabelledRun> runs = {made("", 1, 0.016, 0), made("", 2, 0.008, 0.001), made("", 4, 0.004, 0.001)};
  runs[0].run.folder = write_metrics(folder, "run-1", {0.5, 0.7, 0.9}, 10, 80);
  runs[1].run.folder = write_metrics(folder, "run-2", {0.6, 0.8}, 8, 50);
  runs[2].run.folder = write_metrics(folder, "run-4", {0.4, 0.6, 0.75}, 10, 40);
  runs[0].run.steps = runs[2].run.steps = 30;
  runs[1].run.steps = 16;
  return runs;
}

}  // namespace

TEST_CASE("runs that end after different samples are compared where the first one ends", "[report][study]") {
  const test::TempFolder folder;
  std::vector<LabelledRun> runs = unequal(folder);
  const std::string text = all_lines(make_verdict(make_evidence(runs, {}, {})));
  INFO(text);
  CHECK_THAT(text, Contains("Its test accuracy after 1,024 samples: 0.44 (0.44 to 0.44); one worker's: 0.54 (0.54 to"));
  CHECK_THAT(text, Contains("Best test accuracy after 1,024 samples: 2 ranks (0.8); one worker 0.54.\n"));
  CHECK_THAT(text, Contains("Best test accuracy in 100.1 s: 2 ranks (0.8); one worker 0.5.\n"));
  CHECK_THAT(text, Contains("Cheapest for 1,024 samples: 2 ranks (0.0278 node-hours).\n"));
  const std::string late = all_lines(make_verdict(make_evidence(runs, {.deadline_h = 0.05}, {.node_hour = 36})));
  INFO(late);
  CHECK_THAT(late, Contains("Best test accuracy by the deadline of 3 min: 2 ranks (0.8); one worker 0.7498.\n"));
  CHECK_THAT(late, Contains("Cheapest for 1,024 samples: 2 ranks (0.0278 node-hours, 1 EUR).\n"));
  CHECK_THAT(late, Contains("Cheapest by the deadline: 2 ranks (0.0278 node-hours, 1 EUR, 100.1 s).\n"));
  runs[0].run.folder = write_metrics(folder, "run-1", {0.5, 0.7, 0.9}, 10, 150);
  runs.push_back(made("blind", 2, 0.008, 0.001));
  const std::string blind = all_lines(make_verdict(make_evidence(runs, {}, {})));
  INFO(blind);
  CHECK_THAT(blind,
             Contains("accuracy in 100.1 s: 2 ranks (0.8); one worker has no figure at this point. Not compared: 1 "
                      "setting.\n"));
  CHECK_THAT(blind, Contains("node-hours). Not compared: 1 setting.\n"));
  CHECK_THAT(blind, !Contains("nan") && !Contains("inf"));
  runs = unequal(folder);
  runs[0].run.folder.clear();
  runs[2].run.folder.clear();
  CHECK_THAT(all_lines(make_verdict(make_evidence(runs, {}, {}))), !Contains("Best") && !Contains("Cheapest"));
}

TEST_CASE("a setting that ends before others are evaluated does not decide where they are compared",
          "[report][study]") {
  const test::TempFolder folder;
  std::vector<LabelledRun> runs = unequal(folder);
  runs.push_back(made("short", 2, 0.008, 0.001));
  runs.back().run.folder = write_metrics(folder, "run-short", {0.3}, 5, 10);
  runs.back().run.steps = 5;
  const Evidence evidence = make_evidence(runs, {}, {});
  CHECK(evidence.common_point(&Evaluation::samples) == Approx(1024));
  CHECK(evidence.common_point(&Evaluation::seconds) == Approx(100.1));
  CHECK(std::isnan(evidence.figure_at(find(evidence, "short", 2), &Evaluation::samples, 1024).median));
  CHECK(evidence.figure_at(find(evidence, "short", 2), &Evaluation::seconds, 100.1).median == Approx(0.3));
  const std::string text = all_lines(make_verdict(evidence));
  INFO(text);
  CHECK_THAT(text, Contains("after 1,024 samples: 2 ranks (0.8); one worker 0.54. Not compared: 1 setting.\n"));
  CHECK_THAT(text, Contains("Best test accuracy in 100.1 s: 2 ranks (0.8); one worker 0.5.\n"));
}

TEST_CASE("of equally long runs the cheapest is told without a goal, and the least loss is best", "[report][study]") {
  std::vector<LabelledRun> runs = {made("", 1, 0.016, 0), made("", 2, 0.008, 0.001), made("", 4, 0.004, 0.004)};
  for (LabelledRun& run : runs) {
    run.run.test_loss = 0.5 + 0.1 * run.run.ranks;
    run.run.test_accuracy = kUnknown;
    run.run.time_split_s.total_s *= 1000;
  }
  const Evidence evidence = make_evidence(runs, {}, {});
  const std::string text = all_lines(make_verdict(evidence));
  INFO(text);
  CHECK_THAT(text, Contains("Best test loss after 704 samples: 2 ranks (0.7); one worker 0.6.\n"));
  CHECK_THAT(text, Contains("Cheapest for 704 samples: 2 ranks (0.0367 node-hours).\n"));  // 132 s
}

TEST_CASE("fewest samples, cheapest, and cheapest by the deadline, to the target", "[report][study]") {
  const test::TempFolder folder;
  GoalConfig goal{.metric = GoalMetric::test_accuracy, .target = 0.7, .deadline_h = 0.025};
  const std::string text = all_lines(make_verdict(make_evidence(unequal(folder), goal, {})));
  INFO(text);
  CHECK_THAT(text, Contains("Fewest samples to the target: 2 ranks (896, 0.70x of one worker's).\n"));
  CHECK_THAT(text, Contains("Best test accuracy after 1,024 samples: 2 ranks (0.8); one worker 0.54.\n"));
  CHECK_THAT(text, Contains("Cheapest to the target: 2 ranks (0.0243 node-hours).\n"));  // 87.6 s
  CHECK_THAT(text, Contains("Cheapest by the deadline: 2 ranks (0.0243 node-hours, 87.6 s).\n"));
  goal.deadline_h = 0.02;
  CHECK_THAT(all_lines(make_verdict(make_evidence(unequal(folder), goal, {}))), !Contains("Cheapest by the deadline"));
  std::vector<LabelledRun> fails = unequal(folder);
  fails[0].run.folder = write_metrics(folder, "run-1", {0.5, 0.6, 0.65}, 10, 80);
  const std::string alone = all_lines(make_verdict(make_evidence(fails, goal, {})));
  INFO(alone);
  CHECK_THAT(alone, Contains("Fewest samples to the target: 2 ranks (896).\n"));
  CHECK_THAT(alone, Contains("Cheapest to the target: 2 ranks (0.0243 node-hours).\n"));
  CHECK_THAT(alone, !Contains("nan") && !Contains("inf"));
}

TEST_CASE("the deadline may rule the cheapest setting out", "[report][study]") {
  const test::TempFolder folder;
  std::vector<LabelledRun> runs = unequal(folder);
  runs[1].run.folder = write_metrics(folder, "run-2", {0.3, 0.8}, 8, 70);
  const GoalConfig goal{.metric = GoalMetric::test_accuracy, .target = 0.7, .deadline_h = 0.033};  // 119 s
  const std::string text = all_lines(make_verdict(make_evidence(runs, goal, {})));
  INFO(text);
  CHECK_THAT(text, Contains("Cheapest to the target: 2 ranks (0.037 node-hours).\n"));
  CHECK_THAT(text, Contains("Cheapest by the deadline: 4 ranks (0.0593 node-hours, 106.8 s).\n"));
}

TEST_CASE("least efficiency and greatest cost are judged, met and missed", "[report][study]") {
  const auto judged = [](const GoalConfig& goal) {
    const std::vector<LabelledRun> runs = {made("", 1, 0.016, 0), made("", 2, 0.014, 0.001)};
    return all_lines(make_verdict(make_evidence(runs, goal, {.node_hour = 36000})));
  };
  CHECK_THAT(judged({.least_efficiency = 0.5}), Contains("met 2 ranks: efficiency 53 %, at least 50 %\n"));
  CHECK_THAT(judged({.least_efficiency = 0.6}), Contains("met 1 rank: efficiency 100 %, at least 60 %\n"));
  CHECK_THAT(judged({.greatest_cost = 5}), Contains("met 2 ranks: 2.98 EUR, at most 5 EUR\n"));
  CHECK_THAT(judged({.greatest_cost = 1}), Contains("missed 2 ranks: 2.98 EUR, at most 1 EUR\n"));
  CHECK_THAT(judged({.least_efficiency = 0.6, .greatest_cost = 3}),
             Contains("missed 2 ranks: efficiency 53 %, at least 60 %\nmet 2 ranks: 2.98 EUR, at most 3 EUR\n"));
}

}  // namespace echelon
