// SPDX-License-Identifier: Apache-2.0
// The settings of one environment as the verdict compares them: the measures, the point of comparison, the baseline.
#pragma once

#include <string>
#include <vector>

#include "report/baseline.hpp"
#include "report/contest.hpp"
#include "report/evidence.hpp"

namespace echelon::inline report {

struct Field {
  // The environment must have a baseline.
  Field(const Evidence& evidence, const std::string& environment);

  const Evidence& evidence;
  std::string environment;
  std::vector<const Setting*> members;
  const Setting* base = nullptr;
  bool by_time = false;       // some setting reached the goal: speed is the time to it
  bool has_metric = false;    // the metric of `base` is known at the point of comparison
  bool equal_runs = false;    // all repetitions trained the same number of samples
  double samples = kUnknown;  // samples after which metrics and costs are compared
  double seconds = kUnknown;  // seconds after which metrics are compared at equal time
  Measure speed, rate, metric, metric_in_time, cost, samples_to_goal;
  Margin margin;

  int index(const Setting& s) const { return static_cast<int>(&s - evidence.settings.data()); }
  const Setting& at(int index) const { return evidence.settings[static_cast<std::size_t>(index)]; }
  bool is_base(const Setting& s) const { return &s == base; }
  double gain() const { return 1 + evidence.rules.least_gain; }
  double log_gain() const { return as_compared(speed, gain()); }
  GoalMetric shown() const { return shown_metric(evidence); }
  std::string metric_name() const;  // "test accuracy"
};

}  // namespace echelon::inline report
