// SPDX-License-Identifier: Apache-2.0
// A study's tables and text: columns that only some studies have, and the width of a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "report/verdict.hpp"
#include "report/writers/comparison.hpp"
#include "report/writers/study.hpp"
#include "tests/unit/report/made_record.hpp"
#include "tests/unit/report/made_study.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::Made;

// Returns the length of the longest line, in characters.
std::size_t widest(const std::string& text) {
  std::size_t most = 0;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) most = std::max(most, line.size());
  return most;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Makes a study of many sizes whose variants have names of various lengths.
Evidence large_study(bool goal) {
  std::vector<Made> settings;
  for (const int ranks : {1, 2, 16, 1024})
    for (const std::string& name : {std::string("ring"),
                                    std::string("a variant, its axes = 1e-3 and its many words told "
                                                "at length, lr = 0.001, tau = 1000"),
                                    std::string(130, 'x')}) {
      Made made(ranks, name);
      made.rate(1000.0 * ranks).accuracy(0.9).servers(ranks > 2 ? 4 : 0);
      if (goal) made.seconds(5000.0 / ranks);
      if (ranks == 16) made.diverged(2);
      settings.push_back(made);
    }
  return test::made_record(5, settings, {.goal = goal ? test::kGoal90 : GoalConfig{}, .cost = {.node_hour = 3.6}});
}

}  // namespace

TEST_CASE("a study on a terminal: the answer in the first lines, at most 120 columns", "[report][study]") {
  for (const bool goal : {false, true}) {
    Evidence evidence = large_study(goal);
    for (Setting& s : evidence.settings) {
      s.row.staleness_mean = 6.75, s.row.staleness_largest = 14, s.row.loss_oscillation = 0.0625;
      s.row.gradients_dropped = {0, 1234567}, s.row.samples_dropped = {0, 123456789};
      s.row.peak_flops = 1e15, s.row.card_peak = {9}, s.row.card_mean = {1};
      s.row.peak_rss_mb = {1e6}, s.row.device_peak_mb = {1e5};
      s.budget = {.achieved = 0.5, .micro_batch = 0.1, .exchange = 0.1, .codec = 0.05, .skew = 0.05, .input = 0.05};
      s.budget.optimiser = s.budget.split = s.budget.evaluation = s.budget.checkpoint = s.budget.hooks = 0.03;
    }
    const StudyVerdict verdict = make_verdict(evidence);
    const std::string text = study_text(evidence, verdict);
    INFO(text);
    CHECK(widest(text) <= 120);
    CHECK(verdict.headline.starts_with(first_line(text)));
    CHECK_THAT(text, Catch::StartsWith(headline_text(verdict)));
    for (const char* cell : {"3 of 5, 2 diverged", "6.75, at most 14", "1,234,567 gradients of a", "1024"})
      CHECK_THAT(text, Contains(cell));
  }
}

TEST_CASE("the tables of a report fit a terminal, whatever the names", "[report]") {
  Study study{.kind = StudyKind::single,
              .title = std::string(300, 'y'),
              .facts = std::string(150, 'z'),
              .rows = {},
              .notes = {}};
  for (const std::string& name : {std::string("run"), std::string(90, 'n')}) {
    ScalingRow row;
    row.name = name, row.ranks = 1024, row.servers = 16, row.hosts = 128, row.threads = 32, row.global_batch = 1 << 20;
    row.mesh_text = "data 8 x pipeline 4 x tensor 4 x space 8",
    row.codec_text = "threshold, tau = 0.001, error feedback";
    row.strategy = "synchronous", row.algorithm = "two-level", row.device = "onednn", row.batch_text = "1024";
    row.hash = "1450d256 + 24", row.rate = {1e7, 9e6, 1.1e7}, row.accuracy = {0.9, 0.88, 0.92}, row.train_loss = 0.1;
    row.wire_bytes_per_step = row.formula_bytes_per_step = 123456789012, row.split_bytes_per_step = 12345678;
    row.halo_bytes_per_step = 1234567, row.messages_per_step = 1e6, row.peak_rss_mb = {1e5}, row.device_peak_mb = {8e4};
    row.updates_applied = 1e6, row.updates_dropped = 1e5, row.staleness_mean = 100, row.staleness_largest = 1000;
    row.loss_oscillation = 0.1, row.start_to_first_step_s = 12, row.step_s = {0.1, 0.1, 0.1}, row.has_split = true;
    row.attempts = 12;
    row.percent.fill(100.0 / kTimeParts);
    study.rows.push_back(row);
  }
  study.notes = {std::string(200, 'm')};
  ScalingReport report;
  report.studies = {study};
  report.warnings = {"a warning with \x1b[31m and " + std::string(200, 'w')};
  report.left_out = {{std::string(200, 'f'), "failed", "loss is not finite"}};
  const std::string text = write_text(report);
  INFO(text);
  CHECK(widest(text) <= 120);
  CHECK_THAT(text, !Contains("\x1b"));
  for (const char* cell : {"1450d256 + 24", "100,000 of 1,100,000", "12.0 s", "1,000"})
    CHECK_THAT(text, Contains(cell));
  const std::string markdown = write_markdown(report, test::made_source());
  CHECK_THAT(markdown, Catch::StartsWith("# study &lt;of> digits\n"));
}

TEST_CASE("the oscillation of the loss stands beside the staleness, where any setting has that", "[report][study]") {
  Evidence evidence = test::made_study();
  for (Setting& s : evidence.settings) s.row.loss_oscillation = 0.0625;
  CHECK_THAT(settings_table(evidence).text(), !Contains("oscillation") && !Contains("staleness"));
  evidence.settings[1].row.staleness_mean = 6.75, evidence.settings[1].row.staleness_largest = 14;
  const std::string text = settings_table(evidence).text();
  INFO(text);
  CHECK_THAT(text, Contains("oscillation") && Contains("0.062") && Contains("6.75, at most 14"));
}

TEST_CASE("an exchange is named with its algorithm where it has one", "[report]") {
  RunFigures run;
  run.strategy = "synchronous", run.algorithm = "ring";
  CHECK(exchange_name(run) == "synchronous, ring");
  run.strategy = "asynchronous";
  CHECK(exchange_name(run) == "asynchronous");
}

TEST_CASE("updates, gradients and samples that were dropped are a column where a setting has them", "[report][study]") {
  Evidence evidence = test::made_study();
  CHECK_THAT(settings_table(evidence).text(), !Contains("dropped"));
  for (Setting& s : evidence.settings) s.row.updates_applied = 197, s.row.updates_dropped = 0;
  CHECK_THAT(settings_table(evidence).text(), !Contains("dropped"));
  evidence.settings[1].row.updates_dropped = 3;
  CHECK_THAT(settings_table(evidence).text(), Contains("dropped"));
  evidence.settings[2].row.updates_applied = evidence.settings[2].row.updates_dropped = kUnknown;
  evidence.settings[2].row.gradients_dropped = {0, 5};
  evidence.settings[2].row.samples_dropped = {0, 1320};
  const std::string text = settings_table(evidence).text();
  INFO(text);
  CHECK_THAT(text, Contains("dropped") && Contains("0 of 197 updates") && Contains("3 of 200 updates"));
  CHECK_THAT(text, Contains("5 gradients of a rank, 1,320 samples"));
  RunFigures none;
  CHECK(dropped_text(none) == "-");
  none.gradients_dropped = {0, 0};
  CHECK(dropped_text(none) == "0");
  // The tables of `echelon report` have the figures too, and the largest one over repetitions.
  RunFigures once, twice;
  once.gradients_dropped = {1, 2}, once.samples_dropped = {64, 128};
  twice.gradients_dropped = {0, 4}, twice.samples_dropped = {0, 256};
  CHECK(dropped_text(combine_runs({&once, &twice})) == "4 gradients of a rank, 256 samples");
  Study study;
  study.rows.resize(1);
  CHECK_THAT(rate_table(study).text(), !Contains("dropped"));
  static_cast<RunFigures&>(study.rows[0]) = twice;
  CHECK_THAT(rate_table(study).text(), Contains("dropped") && Contains("4 gradients of a rank, 256 samples"));
}

}  // namespace echelon
