#include "report/evidence.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace echelon::inline report {
namespace {

using Runs = std::vector<const RunRecord*>;

// Of an attempt that trained the whole run.
double seconds_of(const RunRecord& run) { return run.time_split_s.total_s + start_up_s(run, 0); }

double figure_of(const GoalConfig& goal, double test_loss, double test_accuracy) {
  if (goal.metric != GoalMetric::none) return goal_figure(goal.metric, test_loss, test_accuracy);
  return std::isnan(test_accuracy) ? test_loss : test_accuracy;
}

// `value` of the evaluations where `axis` is `where`; evaluations without that value are passed over. A run that has
// ended keeps its figures as time goes on, and has none of more samples.
double interpolated(const std::vector<Evaluation>& curve, double Evaluation::*axis, double where,
                    const std::function<double(const Evaluation&)>& value) {
  const Evaluation* before = nullptr;
  for (const Evaluation& now : curve) {
    if (!std::isfinite(value(now))) continue;
    if (now.*axis < where) {
      before = &now;
      continue;
    }
    if (before == nullptr) return now.*axis == where ? value(now) : kUnknown;
    const double part = (where - before->*axis) / (now.*axis - before->*axis);
    return value(*before) + part * (value(now) - value(*before));
  }
  return before == nullptr || axis != &Evaluation::seconds ? kUnknown : value(*before);
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
  std::vector<double> figures, walls, samples, seconds, trained;
  for (const RunRecord* run : runs) {
    walls.push_back(seconds_of(*run));
    trained.push_back(static_cast<double>(run->steps * run->global_batch));
    const std::vector<Evaluation> curve = evaluations_of(*run);
    if (!run->paced) {
      figures.push_back(figure_of(goal, run->test_loss, run->test_accuracy));
      if (!curve.empty()) setting.curves.push_back(curve);
    }
    if (run == runs.front()) setting.curve = curve;
    if (goal.metric == GoalMetric::none) continue;
    const Reach reach = reach_of(curve, goal);
    if (std::isnan(reach.seconds)) continue;
    ++setting.reached;
    samples.push_back(reach.samples);
    seconds.push_back(reach.seconds);
  }
  setting.run_s = median(walls);
  setting.trained = range_of(trained);
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

double Evidence::node_hours(const Setting& setting, double seconds) const {
  return seconds / 3600 * std::max(1, setting.row.hosts);
}

double Evidence::price(const Setting& setting, double seconds) const {
  return cost.node_hour > 0 ? node_hours(setting, seconds) * cost.node_hour : kUnknown;
}

double Evidence::common_point(double Evaluation::*axis) const {
  std::vector<double> ends;
  for (const Setting& setting : settings) {
    std::vector<double> of_setting;
    for (const std::vector<Evaluation>& curve : setting.curves) {
      double end = kUnknown;
      for (const Evaluation& e : curve)
        if (std::isfinite(figure_of(goal, e.test_loss, e.test_accuracy))) end = e.*axis;
      of_setting.push_back(end);
    }
    if (const double least = range_of(of_setting).low; std::isfinite(least)) ends.push_back(least);
  }
  std::sort(ends.begin(), ends.end());
  for (const double end : ends) {
    const auto known = std::count_if(settings.begin(), settings.end(), [&](const Setting& setting) {
      return std::isfinite(figure_at(setting, axis, end).median);
    });
    if (2 * known > static_cast<std::ptrdiff_t>(ends.size())) return end;
  }
  return kUnknown;
}

Spread Evidence::figure_at(const Setting& setting, double Evaluation::*axis, double where) const {
  std::vector<double> figures;
  for (const std::vector<Evaluation>& curve : setting.curves)
    figures.push_back(interpolated(curve, axis, where,
                                   [&](const Evaluation& e) { return figure_of(goal, e.test_loss, e.test_accuracy); }));
  return range_of(figures);
}

double Evidence::seconds_after(const Setting& setting, double samples) const {
  std::vector<double> seconds;
  for (const std::vector<Evaluation>& curve : setting.curves)
    seconds.push_back(
        interpolated(curve, &Evaluation::samples, samples, [](const Evaluation& e) { return e.seconds; }));
  return range_of(seconds).median;
}

GoalMetric shown_metric(const Evidence& evidence) {
  if (evidence.has_goal()) return evidence.goal.metric;
  return std::isnan(evidence.best_single().row.test_accuracy) ? GoalMetric::test_loss : GoalMetric::test_accuracy;
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
