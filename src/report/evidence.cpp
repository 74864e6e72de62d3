#include "report/evidence.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace echelon::inline report {
namespace {

using Runs = std::vector<const RunRecord*>;

// Of an attempt that trained the whole run.
double seconds_of(const RunRecord& run) {
  const double step_s = std::isnan(run.step_s.median) ? 0 : run.step_s.median;
  const double start_s = std::isnan(run.start_to_first_step_s) ? 0 : std::max(0.0, run.start_to_first_step_s - step_s);
  return run.time_split_s.total_s + start_s;
}

double final_figure(const RunRecord& run, const GoalConfig& goal) {
  if (goal.metric != GoalMetric::none) return goal_figure(goal.metric, run.test_loss, run.test_accuracy);
  return std::isnan(run.test_accuracy) ? run.test_loss : run.test_accuracy;
}

// Over all steps: of a strategy that exchanges in every tenth step the median step is one that does not.
double overall_rate(const RunRecord& run) {
  if (!std::isnan(run.samples_per_s_overall)) return run.samples_per_s_overall;
  const double seconds = run.time_split_s.training_s(), steps = static_cast<double>(run.timed_steps + 1);
  return seconds > 0 ? steps * static_cast<double>(run.global_batch) / seconds : run.samples_per_s.median;
}

Setting setting_of(const std::string& label, const Runs& runs, const GoalConfig& goal) {
  Setting setting;
  setting.label = label;
  setting.row = make_row(runs);
  setting.attempt = runs.front()->folder;
  std::vector<double> rates;
  for (const RunRecord* run : runs) rates.push_back(overall_rate(*run));
  setting.row.rate = range_of(rates);
  std::vector<double> figures, walls, samples, seconds;
  for (const RunRecord* run : runs) {
    walls.push_back(seconds_of(*run));
    if (!run->paced) figures.push_back(final_figure(*run, goal));
    const std::vector<Evaluation> curve = evaluations_of(*run);
    if (run == runs.front()) setting.curve = curve;
    if (goal.metric == GoalMetric::none) continue;
    const Reach reach = reach_of(curve, goal);
    if (std::isnan(reach.seconds)) continue;
    ++setting.reached;
    samples.push_back(reach.samples);
    seconds.push_back(reach.seconds);
  }
  setting.run_s = median(walls);
  setting.final_figure = range_of(figures);
  setting.samples = range_of(samples);
  setting.seconds = range_of(seconds);
  return setting;
}

// Of the fewest ranks, the fastest.
int baseline_of(const std::vector<Setting>& settings) {
  int best = -1;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const Setting& s = settings[i];
    if (best < 0) best = static_cast<int>(i);
    const Setting& held = settings[static_cast<std::size_t>(best)];
    if (s.ranks() < held.ranks() || (s.ranks() == held.ranks() && s.row.rate.median > held.row.rate.median))
      best = static_cast<int>(i);
  }
  return best;
}

}  // namespace

double Evidence::node_hours(const Setting& setting) const {
  return setting.wall_s(has_goal()) / 3600 * std::max(1, setting.row.hosts);
}

double Evidence::price(const Setting& setting) const {
  return cost.node_hour > 0 ? node_hours(setting) * cost.node_hour : kUnknown;
}

Evidence make_evidence(const std::vector<LabelledRun>& runs, const GoalConfig& goal, const CostConfig& cost) {
  Evidence evidence{.goal = goal, .cost = cost, .settings = {}};
  std::vector<std::string> labels;
  std::map<std::pair<int, std::size_t>, Runs> cells;
  for (const LabelledRun& labelled : runs) {
    if (!why_uncounted(labelled.run).empty()) continue;
    const auto at = std::find(labels.begin(), labels.end(), labelled.label);
    const auto index = static_cast<std::size_t>(at - labels.begin());
    if (at == labels.end()) labels.push_back(labelled.label);
    cells[{labelled.run.ranks + labelled.run.servers, index}].push_back(&labelled.run);
  }
  for (const auto& [cell, members] : cells) evidence.settings.push_back(setting_of(labels[cell.second], members, goal));
  evidence.baseline = baseline_of(evidence.settings);
  for (Setting& setting : evidence.settings) {
    const Setting& base = evidence.best_single();
    setting.row.speed_up = setting.row.rate.median / base.row.rate.median;
    setting.row.efficiency = setting.row.speed_up * base.ranks() / setting.ranks();
    setting.budget = loss_budget(setting.row, base.row);
  }
  return evidence;
}

}  // namespace echelon::inline report
