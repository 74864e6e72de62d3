// SPDX-License-Identifier: Apache-2.0
#include "report/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "config/traits/strategies.hpp"
#include "report/baseline.hpp"

namespace echelon::inline report {
namespace {

using Cells = std::vector<const LabelledRun*>;

// Seconds of an attempt that trained the whole run.
double seconds_of(const RunRecord& run) { return run.time_split_s.total_s + start_up_s(run, 0); }

// The rate over all steps. For a strategy that exchanges every tenth step, the median step has no exchange.
double overall_rate(const RunRecord& run) {
  if (!std::isnan(run.samples_per_s_overall)) return run.samples_per_s_overall;
  const double seconds = run.time_split_s.training_s(), steps = static_cast<double>(run.timed_steps + 1);
  return seconds > 0 ? steps * static_cast<double>(run.global_batch) / seconds : run.samples_per_s.median;
}

// Thins the curve evenly, counting from the last point.
std::vector<Evaluation> thinned(const std::vector<Evaluation>& curve) {
  const std::size_t each = (curve.size() + kCurvePoints - 1) / kCurvePoints;
  std::vector<Evaluation> kept;
  for (std::size_t i = 0; i < curve.size(); ++i)
    if ((curve.size() - 1 - i) % each == 0) kept.push_back(curve[i]);
  return kept;
}

Repetition repetition_of(const LabelledRun& cell, const GoalConfig& goal) {
  const RunRecord& run = cell.run;
  Repetition out{.repeat = cell.repeat,
                 .seed = cell.seed,
                 .outcome = outcome_of(cell.outcome),
                 .code = cell.code,
                 .attempt = run.folder};
  const std::vector<Evaluation> curve = run.paced ? std::vector<Evaluation>{} : evaluations_of(run);
  out.curve = thinned(curve);
  if (!out.finished()) return out;
  out.samples_per_s = overall_rate(run);
  out.samples = static_cast<double>(run.steps * run.global_batch);
  out.bytes_per_step = run.wire_bytes_per_step;
  out.down_bytes_per_step = run.down_bytes_per_step;
  out.warm_bytes_per_step = run.warm_wire_bytes_per_step;
  out.peak_rss_mb = largest(run.peak_rss_mb);
  out.device_peak_mb = largest(run.device_peak_mb);
  out.wall_s = seconds_of(run);
  out.cpu_s = run.cpu_s;
  if (run.paced) return out;
  out.train_loss = run.train_loss;
  out.test_loss = run.test_loss;
  out.test_accuracy = run.test_accuracy;
  out.test_mean_iou = run.test_mean_iou;
  out.test_macro_f1 = run.test_macro_f1;
  out.test_auc = run.test_auc;
  out.test_mae = run.test_mae;
  out.test_r2 = run.test_r2;
  out.train_accuracy = run.train_accuracy;
  out.drift = run.drift;
  out.noise_scale = run.noise_scale;
  out.sharpness = cell.sharpness;
  if (goal.metric == GoalMetric::none) return out;
  const Reach reach = reach_of(curve, goal);
  out.samples_to_target = reach.samples;
  out.seconds_to_target = reach.seconds;
  return out;
}

Setting setting_of(const Cells& cells, const GoalConfig& goal) {
  Setting setting;
  setting.label = cells.front()->label;
  setting.environment = cells.front()->environment;
  std::vector<const RunRecord*> finished;
  for (const LabelledRun* cell : cells) {
    setting.repetitions.push_back(repetition_of(*cell, goal));
    if (!setting.repetitions.back().finished()) continue;
    finished.push_back(&cell->run);
    if (setting.wire.empty()) setting.wire = read_wire(cell->run.folder);
  }
  const RunRecord& first = cells.front()->run;
  setting.all_ranks = cells.front()->ranks > 0 ? cells.front()->ranks : first.ranks + first.servers;
  if (!finished.empty()) {
    setting.row = make_row(finished);
    return setting;
  }
  static_cast<RunFigures&>(setting.row) = first;
  setting.row.ranks = setting.all_ranks - first.servers;
  if (first.config) setting.row.strategy = first.config->exchange.strategy;
  return setting;
}

// Gives repetitions without a round the next free one.
void number_rounds(std::vector<Repetition>& repetitions) {
  std::vector<int> taken;
  for (Repetition& r : repetitions) {
    while (std::find(taken.begin(), taken.end(), r.repeat) != taken.end()) ++r.repeat;
    taken.push_back(r.repeat);
  }
  std::stable_sort(repetitions.begin(), repetitions.end(),
                   [](const Repetition& a, const Repetition& b) { return a.repeat < b.repeat; });
}

void count(Setting& setting, const Evidence& evidence) {
  std::vector<double> rates, walls, samples, seconds, trained, figures, accuracies;
  setting.reached = setting.diverged = setting.failed = 0;
  for (const Repetition& r : setting.repetitions) {
    setting.diverged += r.outcome == Outcome::diverged ? 1 : 0;
    setting.failed += r.outcome == Outcome::failed ? 1 : 0;
    if (!r.finished()) continue;
    rates.push_back(r.samples_per_s);
    walls.push_back(r.wall_s);
    trained.push_back(r.samples);
    figures.push_back(evidence.final_figure(r));
    accuracies.push_back(r.test_accuracy);
    if (!r.reached()) continue;
    ++setting.reached;
    samples.push_back(r.samples_to_target);
    seconds.push_back(r.seconds_to_target);
  }
  setting.row.attempts = static_cast<int>(rates.size());
  setting.row.rate = range_of(rates);
  setting.row.accuracy = range_of(accuracies);
  setting.run_s = median(walls);
  setting.trained = range_of(trained);
  setting.final_figure = range_of(figures);
  setting.samples = range_of(samples);
  setting.seconds = range_of(seconds);
}

void watch_machine(Evidence& evidence, Setting& setting) {
  std::vector<double> rates;
  for (const ControlRate& control : evidence.controls)
    if (control.environment == setting.environment) rates.push_back(control.samples_per_s);
  const double usual = median(rates);
  for (Repetition& r : setting.repetitions) {
    r.machine = kUnknown;
    for (const ControlRate& control : evidence.controls)
      if (control.environment == setting.environment && control.repeat == r.repeat)
        r.machine = control.samples_per_s / usual;
  }
}

}  // namespace

int Setting::parts_beyond_plain() const {
  return (row.servers > 0 ? 1 : 0) + (row.mesh.parts() > 1 ? 1 : 0) + (row.codec != "none" ? 1 : 0) +
         (row.strategy.empty() || strategy_traits(row.strategy).sums_gradients() ? 0 : 1);
}

std::string Setting::outcome_text(bool has_goal) const {
  std::string text = has_goal ? fmt::format("reached {} of {}", reached, tried()) : "";
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  if (!has_goal && finished() < tried()) add(fmt::format("{} of {} finished", finished(), tried()));
  if (diverged > 0) add(fmt::format("{} diverged", diverged));
  if (failed > 0) add(fmt::format("{} failed", failed));
  return text;
}

Evidence make_evidence(const std::vector<LabelledRun>& runs, const GoalConfig& goal, const CostConfig& cost,
                       const StudyRules& rules, const std::vector<ControlRate>& controls) {
  Evidence evidence{.goal = goal, .cost = cost, .rules = rules, .settings = {}, .controls = controls};
  std::vector<std::string> labels, environments;
  const auto index_in = [](std::vector<std::string>& names, const std::string& name) {
    const auto at = std::find(names.begin(), names.end(), name) - names.begin();
    if (at == std::ssize(names)) names.push_back(name);
    return static_cast<std::size_t>(at);
  };
  std::map<std::tuple<std::size_t, int, std::size_t>, Cells> settings;
  for (const LabelledRun& cell : runs) {
    if (outcome_of(cell.outcome) == Outcome::finished && !why_uncounted(cell.run).empty()) continue;
    const int ranks = cell.ranks > 0 ? cell.ranks : cell.run.ranks + cell.run.servers;
    settings[{index_in(environments, cell.environment), ranks, index_in(labels, cell.label)}].push_back(&cell);
  }
  for (const auto& [key, cells] : settings) {
    evidence.settings.push_back(setting_of(cells, goal));
    number_rounds(evidence.settings.back().repetitions);
  }
  complete(evidence);
  return evidence;
}

void complete(Evidence& evidence) {
  evidence.environments.clear();
  evidence.baselines.clear();
  evidence.baseline = -1;
  for (Setting& setting : evidence.settings) {
    count(setting, evidence);
    watch_machine(evidence, setting);
    if (std::find(evidence.environments.begin(), evidence.environments.end(), setting.environment) ==
        evidence.environments.end())
      evidence.environments.push_back(setting.environment);
  }
  for (const std::string& environment : evidence.environments) {
    evidence.baselines.push_back(choose_baseline(evidence, environment));
    if (evidence.baseline < 0) evidence.baseline = evidence.baselines.back();
  }
  for (Setting& setting : evidence.settings) {
    const int at = evidence.baseline_of(setting);
    if (at < 0 || setting.finished() == 0) continue;
    const Setting& base = evidence.settings[static_cast<std::size_t>(at)];
    setting.row.speed_up = setting.row.rate.median / base.row.rate.median;
    setting.row.efficiency = setting.row.speed_up * base.ranks() / setting.ranks();
    setting.budget = loss_budget(setting.row, base.row);
  }
}

}  // namespace echelon::inline report
