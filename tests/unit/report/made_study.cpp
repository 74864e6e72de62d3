// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/report/made_study.hpp"

namespace echelon::test {
namespace {

LabelledRun run_of(const std::string& label, int ranks) {
  LabelledRun made{.label = label, .run = {}};
  RunRecord& run = made.run;
  const double step_s = 0.02 / ranks + (label == kOddName ? 0.001 : 0.002);
  run.has_summary = true;
  run.state = "finished";
  run.strategy = "synchronous";
  run.algorithm = "ring";
  run.ranks = ranks;
  run.hosts = 1;
  run.global_batch = 64;
  run.parameters = 1000;
  run.forward_flops = 1e6;
  run.backward_flops = 2e6;
  run.timed_steps = 10;
  run.steps = 11;
  run.time_split_s = {.total_s = 11 * step_s,
                      .data_wait_s = 0,
                      .forward_s = 11 * 0.005 / ranks,
                      .backward_s = 11 * 0.015 / ranks,
                      .split_s = 0,
                      .exchange_s = ranks > 1 ? 11 * 0.0005 : 0.0,
                      .optimiser_s = 0};
  run.step_s = {step_s, step_s, step_s};
  run.samples_per_s = {64 / step_s, 64 / step_s, 64 / step_s};
  run.samples_per_s_overall = 64 / step_s;
  run.start_to_first_step_s = 0.1 + step_s;
  run.test_loss = 0.25;
  run.test_accuracy = 0.9;
  return made;
}

}  // namespace

Evidence made_study() {
  const GoalConfig goal{.metric = GoalMetric::test_accuracy, .target = 0.8, .least_efficiency = 0.5};
  Evidence evidence = make_evidence({run_of("plain", 1), run_of(kOddName, 1), run_of("plain", 2), run_of(kOddName, 2)},
                                    goal, {.node_hour = 3.6});
  for (Setting& s : evidence.settings) {
    const double seconds = 100.0 / s.ranks();
    for (Repetition& r : s.repetitions) {
      r.curve = {{.step = 10, .samples = 640, .seconds = seconds, .test_loss = 0.5, .test_accuracy = 0.75},
                 {.step = 20, .samples = 1280, .seconds = 2 * seconds, .test_loss = 0.25, .test_accuracy = 0.9}};
      if (s.label == kOddName && s.ranks() == 2) continue;
      r.samples_to_target = 853;
      r.seconds_to_target = 1.33 * seconds;
    }
  }
  evidence.settings.front().repetitions.front().curve.front().test_loss = kUnknown;
  complete(evidence);
  return evidence;
}

ReportSource made_source() { return {"study <of> digits", "echelon scale x.toml", "2026-01-01 12:00", "0.1.0", "abc"}; }

}  // namespace echelon::test
