// The settings of one environment as the verdict compares them: by what, at which point, against which single worker.
#pragma once

#include <string>
#include <vector>

#include "report/baseline.hpp"
#include "report/contest.hpp"
#include "report/evidence.hpp"

namespace echelon::inline report {

struct Field {
  // The environment has a baseline.
  Field(const Evidence& evidence, const std::string& environment);

  const Evidence& evidence;
  std::string environment;
  std::vector<const Setting*> members;
  const Setting* base = nullptr;
  bool by_time = false;       // a setting reached the goal: speed is the time to it
  bool has_metric = false;    // the metric of `base` is known at the point of comparison
  bool equal_runs = false;    // all repetitions trained equally many samples
  double samples = kUnknown;  // where metrics and costs are compared
  double seconds = kUnknown;  // where metrics are compared in equal times
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
