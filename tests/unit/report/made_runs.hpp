// SPDX-License-Identifier: Apache-2.0
// Runs made up with known times, for tests of evidence and verdicts.
#pragma once

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/atomic_file.hpp"
#include "report/evidence.hpp"
#include "report/verdict.hpp"
#include "tests/support/process.hpp"
#include "tests/unit/report/sentences.hpp"

namespace echelon::test {

// A run of 11 steps of 64 samples; beside compute and exchange a step has 1 ms of the optimiser and 1 ms of other work.
inline LabelledRun made(const std::string& label, int ranks, double compute_s, double exchange_s,
                        double accuracy = 0.9) {
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

inline const Setting& find(const Evidence& evidence, const std::string& label, int ranks) {
  for (const Setting& setting : evidence.settings)
    if (setting.label == label && setting.row.ranks == ranks) return setting;
  FAIL("no setting " << label << " on " << ranks);
  return evidence.settings.front();
}

inline std::string all_lines(const StudyVerdict& verdict) {
  std::string text = text_of(verdict);
  for (const GoalLine& goal : verdict.goals) text += fmt::format("{} {}\n", goal.met ? "met" : "missed", goal.text);
  return text;
}

// Repeats the runs in five rounds, in which the machine is a little slower or faster, and each run varies a little.
inline std::vector<LabelledRun> repeated(const std::vector<LabelledRun>& runs) {
  std::vector<LabelledRun> all;
  for (int round = 1; round <= 5; ++round)
    for (std::size_t i = 0; i < runs.size(); ++i) {
      LabelledRun run = runs[i];
      const int own = (3 * round + 2 * static_cast<int>(i)) % 5 - 2;
      run.repeat = round;
      run.run.samples_per_s_overall *= 1 + 0.01 * (round - 3) + 0.002 * own;
      all.push_back(run);
    }
  return all;
}

// Writes an evaluation after each epoch, which has 10 steps and takes 100 s by default, and a test half way through the
// second epoch.
inline std::string write_metrics(const TempFolder& folder, const std::string& name, const std::vector<double>& accuracy,
                                 int steps = 10, double seconds = 100) {
  const std::string attempt = folder / (name + "/01");
  make_folders(attempt);
  std::string rows = "{\"type\":\"step\",\"step\":1}\n";
  for (std::size_t e = 0; e < accuracy.size(); ++e) {
    if (e == 1)
      rows += fmt::format(R"({{"type":"test","epoch":1,"step":{},"test_accuracy":{},"seconds":1}})", steps * 3 / 2,
                          accuracy[0]) +
              "\n";
    rows += fmt::format(R"({{"type":"epoch","epoch":{},"step":{},"test_accuracy":{},"seconds":{}}})", e + 1,
                        steps * static_cast<int>(e + 1), accuracy[e], seconds) +
            "\n";
  }
  write_file_whole(attempt + "/metrics.jsonl", rows + "{\"type\":\"epo");
  return attempt;
}

}  // namespace echelon::test
