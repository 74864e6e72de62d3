// SPDX-License-Identifier: Apache-2.0
// Figures along the curves of evidence, and costs.
#include <algorithm>
#include <cmath>
#include <functional>

#include "report/evidence.hpp"

namespace echelon::inline report {
namespace {

template <class Record>
double figure_of(const GoalConfig& goal, const Record& record) {
  if (goal.metric != GoalMetric::none) return goal_figure(goal.metric, test_figures(record));
  return std::isnan(record.test_accuracy) ? record.test_loss : record.test_accuracy;
}

// Interpolates `value` where `axis` equals `where`, and skips evaluations without that value. A finished run keeps its
// figures as time passes, but has none for more samples.
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

// Median and range over the finished repetitions.
template <class Value>
Spread spread_of(const Setting& setting, const Value& value) {
  std::vector<double> values;
  for (const Repetition& repetition : setting.repetitions)
    if (repetition.finished()) values.push_back(value(repetition));
  return range_of(values);
}

}  // namespace

double Evidence::node_hours(const Setting& setting, double seconds) const {
  return seconds / 3600 * std::max(1, setting.row.hosts);
}

double price_of(const CostConfig& cost, double hosts, double ranks, double seconds) {
  return has_price(cost) ? seconds / 3600 * (hosts * cost.node_hour + ranks * cost.rank_hour) : kUnknown;
}

double Evidence::price(const Setting& setting, double seconds) const {
  return price_of(cost, std::max(1, setting.row.hosts), setting.ranks(), seconds);
}

int Evidence::baseline_of(const Setting& setting) const {
  const auto at = std::find(environments.begin(), environments.end(), setting.environment);
  return at == environments.end() ? -1 : baselines[static_cast<std::size_t>(at - environments.begin())];
}

double Evidence::final_figure(const Repetition& repetition) const { return figure_of(goal, repetition); }

double Evidence::common_point(double Evaluation::*axis, const std::string& environment) const {
  std::vector<double> ends;
  for (const Setting& setting : settings) {
    if (setting.environment != environment) continue;
    const double least = spread_of(setting, [&](const Repetition& repetition) {
                           double end = kUnknown;
                           for (const Evaluation& e : repetition.curve)
                             if (std::isfinite(figure_of(goal, e))) end = e.*axis;
                           return end;
                         }).low;
    if (std::isfinite(least)) ends.push_back(least);
  }
  std::sort(ends.begin(), ends.end());
  for (const double end : ends) {
    const auto known = std::count_if(settings.begin(), settings.end(), [&](const Setting& setting) {
      return setting.environment == environment && std::isfinite(figure_at(setting, axis, end).median);
    });
    if (2 * known > static_cast<std::ptrdiff_t>(ends.size())) return end;
  }
  return kUnknown;
}

double Evidence::figure_at(const Repetition& repetition, double Evaluation::*axis, double where) const {
  return interpolated(repetition.curve, axis, where, [&](const Evaluation& e) { return figure_of(goal, e); });
}

Spread Evidence::figure_at(const Setting& setting, double Evaluation::*axis, double where) const {
  return spread_of(setting, [&](const Repetition& r) { return figure_at(r, axis, where); });
}

double Evidence::seconds_after(const Repetition& repetition, double samples) {
  return interpolated(repetition.curve, &Evaluation::samples, samples, [](const Evaluation& e) { return e.seconds; });
}

double Evidence::seconds_after(const Setting& setting, double samples) const {
  return spread_of(setting, [&](const Repetition& r) { return seconds_after(r, samples); }).median;
}

GoalMetric shown_metric(const Evidence& evidence) {
  if (evidence.has_goal()) return evidence.goal.metric;
  const auto knows = [](const Setting& s) { return !std::isnan(s.row.test_accuracy); };
  return std::any_of(evidence.settings.begin(), evidence.settings.end(), knows) ? GoalMetric::test_accuracy
                                                                                : GoalMetric::test_loss;
}

}  // namespace echelon::inline report
