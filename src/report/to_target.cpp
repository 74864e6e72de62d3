// SPDX-License-Identifier: Apache-2.0
#include "report/to_target.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "report/metrics_file.hpp"

namespace echelon::inline report {
namespace {

namespace fs = std::filesystem;

// The attempts of the run up to and including this one.
std::vector<std::string> attempts_up_to(const std::string& attempt) {
  std::vector<std::string> all;
  if (attempt.empty()) return all;
  const std::string last = fs::path(attempt).filename().string();
  for (const auto& entry : fs::directory_iterator(fs::path(attempt).parent_path())) {
    const std::string name = entry.path().filename().string();
    const bool number =
        !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (number && name.size() == last.size() && name <= last && fs::exists(entry.path() / "metrics.jsonl"))
      all.push_back(entry.path().string());
  }
  std::sort(all.begin(), all.end());
  return all;
}

Evaluation evaluation_of(const EpochFigures& figures, double samples_a_step, double seconds) {
  return {.step = static_cast<double>(figures.step),
          .samples = static_cast<double>(figures.step) * samples_a_step,
          .seconds = seconds,
          .test_loss = figures.test_loss,
          .test_accuracy = figures.test_accuracy,
          .test_mean_iou = figures.test_mean_iou,
          .test_macro_f1 = figures.test_macro_f1,
          .test_auc = figures.test_auc,
          .test_mae = figures.test_mae,
          .test_r2 = figures.test_r2};
}

// An evaluation within an epoch has no time of its own; its time follows from its step.
void add_attempt(const std::string& attempt, double samples_a_step, std::vector<Evaluation>& all) {
  const MetricsRows rows = read_metrics(attempt);
  double step = all.empty() ? 0 : all.back().step, seconds = all.empty() ? 0 : all.back().seconds;
  auto test = rows.tests.begin();
  for (const EpochFigures& epoch : rows.epochs) {
    const double steps = std::max(1.0, static_cast<double>(epoch.step) - step);
    for (; test != rows.tests.end() && test->step <= epoch.step; ++test) {
      const double part = (static_cast<double>(test->step) - step) / steps;
      all.push_back(evaluation_of(*test, samples_a_step, seconds + part * epoch.seconds));
    }
    seconds += epoch.seconds;
    step = static_cast<double>(epoch.step);
    all.push_back(evaluation_of(epoch, samples_a_step, seconds));
  }
}

}  // namespace

std::vector<Evaluation> evaluations_of(const RunRecord& run) {
  std::vector<Evaluation> all;
  for (const std::string& attempt : attempts_up_to(run.folder))
    add_attempt(attempt, static_cast<double>(run.global_batch), all);
  const double start_s = run.start_to_first_step_s - run.step_s.median;
  for (Evaluation& evaluation : all)
    if (start_s > 0) evaluation.seconds += start_s;
  std::erase_if(all, [](const Evaluation& e) { return std::isnan(e.test_loss) && std::isnan(e.test_accuracy); });
  return all;
}

Reach reach_of(const std::vector<Evaluation>& evaluations, const GoalConfig& goal) {
  const Evaluation* before = nullptr;
  for (const Evaluation& now : evaluations) {
    const double figure = goal_figure(goal.metric, test_figures(now));
    if (!goal_met(goal, test_figures(now))) {
      if (std::isfinite(figure)) before = &now;
      continue;
    }
    if (before == nullptr) return {now.samples, now.seconds};
    const double last = goal_figure(goal.metric, test_figures(*before));
    const double part = (goal.target - last) / (figure - last);
    return {before->samples + part * (now.samples - before->samples),
            before->seconds + part * (now.seconds - before->seconds)};
  }
  return {};
}

}  // namespace echelon::inline report
