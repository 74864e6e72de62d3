// SPDX-License-Identifier: Apache-2.0
// A study's evidence, from runs made up with known times.
#include <catch2/catch.hpp>
#include <cmath>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "report/evidence.hpp"
#include "report/to_target.hpp"
#include "report/wire_table.hpp"
#include "report/writers/study.hpp"
#include "tests/support/process.hpp"
#include "tests/unit/report/made_runs.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::find;
using test::made;
using test::write_metrics;

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
  const double whole = 0.003 + 0.002 + 0.002 + 0.001 + 0.1 / 11;  // one step, with start-up spread over all steps
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

TEST_CASE("of single workers within one per cent the plainest is the baseline, not the luckiest", "[report][study]") {
  const auto with_strategy = [](LabelledRun run, const char* strategy) {
    run.run.strategy = strategy;
    return run;
  };
  const LabelledRun plain = with_strategy(made("ring", 1, 0.008, 0), "synchronous");
  const auto label_beside = [&](double compute_s) {
    const LabelledRun other = with_strategy(made("averaging", 1, compute_s, 0), "averaging");
    return make_evidence({other, plain}, {}, {}).best_single().label;
  };
  CHECK(label_beside(0.00795) == "ring");      // 0.5 % of a step of 10 ms
  CHECK(label_beside(0.0078) == "averaging");  // 2 %
}

TEST_CASE("the warm-up of a study's cell is start-up in its loss budget and part of its time", "[report][study]") {
  LabelledRun warmed = made("ring", 4, 0.003, 0.002);
  const Evidence without = make_evidence({made("ring", 1, 0.008, 0), warmed}, {}, {});
  warmed.run.warmup_steps = 3;
  warmed.run.warmup_s = 0.4;
  const Evidence with = make_evidence({made("ring", 1, 0.008, 0), warmed}, {}, {});
  const double whole = 0.003 + 0.002 + 0.002 + 0.001 + (0.1 + 0.4) / 11;
  const Setting &four = find(with, "ring", 4), &before = find(without, "ring", 4);
  CHECK(four.budget.start_up == Approx((0.1 + 0.4) / 11 / whole));
  CHECK(four.budget.exchange == Approx(0.0015 / whole));
  CHECK(four.row.speed_up == Approx(before.row.speed_up));
  CHECK(four.run_s == Approx(before.run_s + 0.4));
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
  CHECK(four.codec == Approx(0.0015 / 3 / whole));  // coding is a third of the exchange
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
  // 16 samples per rank: 16 MFLOP in 1 ms, 32 MFLOP in 3 ms; 3e6 x 64 / 1000 per weight.
  const std::string text = compute_table(make_evidence({run}, {}, {})).text();
  INFO(text);
  CHECK_THAT(text, Contains("16.0 (50 %)") && Contains("10.7 (33 %)") && Contains("192,000") && Contains("91"));
}

TEST_CASE("a strategy that exchanges in every tenth step is judged by all its steps", "[report][study]") {
  LabelledRun averaging = made("averaging", 4, 0.003, 0.010);
  averaging.run.samples_per_s = {64 / 0.005, 64 / 0.005, 64 / 0.005};  // by the median step
  const Evidence evidence = make_evidence({made("ring", 1, 0.008, 0), averaging}, {}, {});
  CHECK(find(evidence, "averaging", 4).row.speed_up == Approx(0.010 / 0.015));
  averaging.run.samples_per_s_overall = kUnknown;  // an older record: the rate follows from the parts of its time
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
        "All ranks sent 2.500 MB per step, 2.500 MB of them for gradients and weights; the formula gives 2.400 MB.");
  write_file_whole(folder / "wire.json", R"({"format":"echelon-wire","version":1,"steps":2,"bytes":[[0,4e6],[1e6]]})");
  CHECK_THROWS_AS(read_wire(folder.path()), DataError);
}

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

}  // namespace echelon
