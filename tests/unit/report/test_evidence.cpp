// A study's evidence and verdict: from runs made up with known times.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "report/evidence.hpp"
#include "report/to_target.hpp"
#include "report/verdict.hpp"
#include "report/wire_table.hpp"
#include "report/writers/study.hpp"
#include "tests/support/process.hpp"

namespace echelon {
namespace {

using Catch::Contains;

// A run of 11 steps of 64 samples: on one rank 8 ms of compute a step, 1 ms of the optimiser and 1 ms else.
LabelledRun made(const std::string& label, int ranks, double compute_s, double exchange_s, double accuracy = 0.9) {
  LabelledRun made{.label = label, .run = {}};
  RunRecord& run = made.run;
  run.has_summary = true;
  run.state = "finished";
  run.ranks = ranks;
  run.hosts = (ranks + 1) / 2;
  run.global_batch = 64;
  run.timed_steps = 10;
  run.steps = 11;
  const double step_s = compute_s + exchange_s + 0.002;
  run.time_split_s = {.total_s = 11 * (step_s + 0.001),
                      .data_wait_s = 0,
                      .forward_s = 11 * compute_s / 4,
                      .backward_s = 11 * compute_s * 3 / 4,
                      .split_s = 0,
                      .exchange_s = 11 * exchange_s,
                      .optimiser_s = 11 * 0.001,
                      .hooks_s = 11 * 0.001};
  run.step_s = {step_s, step_s, step_s};
  run.samples_per_s = {64 / step_s, 64 / step_s, 64 / step_s};
  run.samples_per_s_overall = 64 / step_s;
  run.start_to_first_step_s = 0.1 + step_s;
  run.skew_wait_s = ranks > 1 ? 0.0005 : kUnknown;
  run.test_accuracy = accuracy;
  return made;
}

const Setting& find(const Evidence& evidence, const std::string& label, int ranks) {
  for (const Setting& setting : evidence.settings)
    if (setting.label == label && setting.row.ranks == ranks) return setting;
  FAIL("no setting " << label << " on " << ranks);
  return evidence.settings.front();
}

std::string all_lines(const StudyVerdict& verdict) {
  std::string text;
  for (const std::string& line : verdict.lines) text += line + "\n";
  for (const GoalLine& goal : verdict.goals) text += fmt::format("{} {}\n", goal.met ? "met" : "missed", goal.text);
  return text;
}

// With a little noise: three repetitions.
std::vector<LabelledRun> thrice(const std::vector<LabelledRun>& runs) {
  std::vector<LabelledRun> all;
  for (const double factor : {0.99, 1.0, 1.01})
    for (LabelledRun run : runs) {
      run.run.samples_per_s_overall *= factor;
      all.push_back(run);
    }
  return all;
}

}  // namespace

TEST_CASE("the loss budget sums to the whole and names where the time went", "[report][study]") {
  const Evidence evidence =
      make_evidence({made("ring", 1, 0.008, 0), made("ring", 4, 0.003, 0.002), made("tree", 1, 0.009, 0)}, {}, {});
  REQUIRE(evidence.baseline >= 0);
  CHECK(evidence.best_single().label == "ring");
  for (const Setting& setting : evidence.settings) {
    double sum = 0;
    for (const BudgetPart& part : kBudgetParts) sum += setting.budget.*part.share;
    CHECK(sum == Approx(1));
  }
  const LossBudget& four = find(evidence, "ring", 4).budget;
  const double whole = 0.003 + 0.002 + 0.002 + 0.001 + 0.1 / 11;  // of a step, start-up spread over them
  CHECK(four.achieved == Approx(0.010 / 4 / whole));
  CHECK(four.micro_batch == Approx((0.003 - 0.002) / whole));
  CHECK(four.exchange == Approx(0.0015 / whole));
  CHECK(four.skew == Approx(0.0005 / whole));
  CHECK(four.optimiser == Approx((0.001 - 0.00025) / whole));
  CHECK(four.hooks == Approx(0.001 / whole));
  CHECK(four.start_up == Approx(0.1 / 11 / whole));
  CHECK(four.other == Approx((0.001 - 0.00025) / whole));
  CHECK(find(evidence, "ring", 4).row.speed_up == Approx(0.010 / 0.007));
}

TEST_CASE("the loss budget tells the codec from the exchange, and evaluation and checkpoints from other hooks",
          "[report][study]") {
  LabelledRun coded = made("int8", 4, 0.003, 0.002);
  StepTimes& times = coded.run.time_split_s;
  times.evaluation_s = 11 * 0.0004;
  times.checkpoint_s = 11 * 0.0005;
  times.hooks_s = 11 * 0.0001;
  coded.run.exchange_exposed_s = 11 * 0.0015;
  coded.run.exchange_hidden_s = 11 * 0.0045;
  coded.run.codec_s = 11 * 0.002;
  const Evidence evidence = make_evidence({made("ring", 1, 0.008, 0), coded}, {}, {});
  const LossBudget& four = find(evidence, "int8", 4).budget;
  const double whole = 0.003 + 0.002 + 0.002 + 0.001 + 0.1 / 11;
  CHECK(four.codec == Approx(0.0015 / 3 / whole));  // a third of the exchange is coding
  CHECK(four.exchange == Approx(0.0015 * 2 / 3 / whole));
  CHECK(four.evaluation == Approx(0.0004 / whole));
  CHECK(four.checkpoint == Approx(0.0005 / whole));
  CHECK(four.hooks == Approx(0.0001 / whole));
  CHECK(shown_parts(evidence).size() == kBudgetParts.size() - 2);  // neither input nor split
}

TEST_CASE("compute of a rank: rates of the phases beside the peak, FLOP a weight and step", "[report][study]") {
  LabelledRun run = made("ring", 4, 0.004, 0.002);
  run.run.parameters = 1000;
  run.run.forward_flops = 1e6;
  run.run.backward_flops = 2e6;
  run.run.peak_flops = 32e9;
  run.run.peak_rss_mb = {80, 91, 70, 60};
  // 16 samples a rank: 16 MFLOP in 1 ms, 32 MFLOP in 3 ms; 3e6 x 64 / 1000 a weight.
  const std::string text = compute_table(make_evidence({run}, {}, {})).text();
  INFO(text);
  CHECK_THAT(text, Contains("16.0 (50 %)") && Contains("10.7 (33 %)") && Contains("192,000") && Contains("91"));
}

TEST_CASE("a strategy that exchanges in every tenth step is judged by all its steps", "[report][study]") {
  LabelledRun averaging = made("averaging", 4, 0.003, 0.010);
  averaging.run.samples_per_s = {64 / 0.005, 64 / 0.005, 64 / 0.005};  // of the median step
  const Evidence evidence = make_evidence({made("ring", 1, 0.008, 0), averaging}, {}, {});
  CHECK(find(evidence, "averaging", 4).row.speed_up == Approx(0.010 / 0.015));
  averaging.run.samples_per_s_overall = kUnknown;  // an older record: by the parts of its time
  const Evidence older = make_evidence({made("ring", 1, 0.008, 0), averaging}, {}, {});
  CHECK(find(older, "averaging", 4).row.rate.median == Approx(64 / 0.015));
}

TEST_CASE("the wire matrix of an attempt as a table, in MB a step, beside the formula", "[report][study]") {
  test::TempFolder folder;
  RunFigures run;
  run.wire_bytes_per_step = 2.5e6;
  run.formula_bytes_per_step = 2.4e6;
  CHECK(wire_table(read_wire(folder.path())).empty());
  CHECK(wire_text(read_wire(folder.path()), run).empty());
  write_file_whole(folder / "wire.json",
                   R"({"format":"echelon-wire","version":1,"steps":2,"bytes":[[0,4e6],[1e6,0]]})");
  const std::string text = wire_table(read_wire(folder.path())).text();
  INFO(text);
  CHECK_THAT(text, Contains("2.000") && Contains("0.500") && Contains("2.500"));
  CHECK(wire_text(read_wire(folder.path()), run) ==
        "All ranks sent 2.500 MB a step, of that 2.500 MB for gradients and weights; by formula 2.400 MB.");
  write_file_whole(folder / "wire.json", R"({"format":"echelon-wire","version":1,"steps":2,"bytes":[[0,4e6],[1e6]]})");
  CHECK_THROWS_AS(read_wire(folder.path()), DataError);
}

TEST_CASE("the verdict: the single worker first, whether, how few, how many, and which", "[report][study]") {
  const auto runs = thrice({made("ring", 1, 0.016, 0), made("ring", 2, 0.008, 0.001), made("ring", 4, 0.004, 0.004),
                            made("averaging", 1, 0.016, 0), made("averaging", 2, 0.008, 0.0001, 0.85),
                            made("averaging", 4, 0.004, 0.0002, 0.8), made("slow", 2, 0.008, 0.02)});
  const Evidence evidence = make_evidence(runs, {}, {});
  const StudyVerdict verdict = make_verdict(evidence);
  const std::string text = all_lines(verdict);
  INFO(text);
  CHECK_THAT(text, Contains("computes for 89 % of its step") && Contains("nothing to mend"));
  CHECK_THAT(text, Contains("Distribute: the least time is that of averaging on 4 ranks"));
  CHECK_THAT(text, Contains("Its test accuracy after equal samples: 0.8 (0.8 to 0.8); one worker's: 0."));
  CHECK_THAT(text, Contains("Fewest ranks that gain: averaging on 2 ranks") && Contains("on 1 host"));
  CHECK_THAT(text, Contains("Up to 4 ranks at least"));
  CHECK_THAT(text, Contains("No better than one worker, at their ranks' cost: slow on 2 ranks (0.60x)"));
  CHECK_THAT(text, Contains("Most samples/s: averaging on 4 ranks"));
  CHECK_THAT(text, Contains("Best test accuracy after equal samples: ring on 2 ranks (0.9)"));
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
  CHECK_THAT(text,
             Contains("Mend the single worker first: it computes for 20 % of its step and waits for data for 70"));
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

namespace {

// Writes evaluations after each of three epochs of 100 s, and of a test half way through the second.
std::string write_metrics(const test::TempFolder& folder, const std::string& name,
                          const std::vector<double>& accuracy) {
  const std::string attempt = folder / (name + "/01");
  make_folders(attempt);
  std::string rows = "{\"type\":\"step\",\"step\":1}\n";
  for (std::size_t e = 0; e < accuracy.size(); ++e) {
    if (e == 1)
      rows +=
          fmt::format(R"({{"type":"test","epoch":1,"step":15,"test_accuracy":{},"seconds":1}})", accuracy[0]) + "\n";
    rows += fmt::format(R"({{"type":"epoch","epoch":{},"step":{},"test_accuracy":{},"seconds":100}})", e + 1,
                        10 * (e + 1), accuracy[e]) +
            "\n";
  }
  write_file_whole(attempt + "/metrics.jsonl", rows + "{\"type\":\"epo");
  return attempt;
}

}  // namespace

TEST_CASE("a target is reached between two evaluations, in samples and seconds", "[report][study]") {
  const test::TempFolder folder;
  RunRecord run = made("", 2, 0.01, 0).run;
  run.folder = write_metrics(folder, "run-a", {0.5, 0.7, 0.9});
  const auto evaluations = evaluations_of(run);
  REQUIRE(evaluations.size() == 4);
  CHECK(evaluations[1].step == 15);
  CHECK(evaluations[1].seconds == Approx(0.1 + 150));
  const GoalConfig goal{.metric = GoalMetric::test_accuracy, .target = 0.6};
  const Reach reach = reach_of(evaluations, goal);
  CHECK(reach.samples == Approx(64 * 17.5));
  CHECK(reach.seconds == Approx(0.1 + 175));
  CHECK(reach_of(evaluations, {.metric = GoalMetric::test_accuracy, .target = 0.4}).samples == Approx(640));
  CHECK(std::isnan(reach_of(evaluations, {.metric = GoalMetric::test_accuracy, .target = 0.95}).samples));
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

}  // namespace echelon
