// SPDX-License-Identifier: Apache-2.0
#include "report/convert/timeline.hpp"

#include <cmath>
#include <ctime>

namespace echelon::inline report {
namespace {

// Seconds since 1970 of "2026-01-31T12:34:56Z"; 0 for other text.
double seconds_of(const std::string& utc) {
  std::tm parts{};
  return strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) == nullptr ? 0 : static_cast<double>(timegm(&parts));
}

}  // namespace

Timeline::Timeline(const RunRecord& run, const MetricsRows& rows) : start_s_(seconds_of(run.provenance.started)) {
  const double first_total = rows.steps.empty() ? 0 : rows.steps.front().time.total_s;
  const double to_first = std::isnan(run.start_to_first_step_s) ? first_total : run.start_to_first_step_s;
  first_s_ = start_s_ + std::max(0.0, to_first - first_total);
  double now_s = first_s_;
  for (const StepFigures& step : rows.steps) ends_s_[step.step] = now_s += step.time.total_s;
}

double Timeline::at_step(std::int64_t step) const {
  const auto after = ends_s_.upper_bound(step);
  return after == ends_s_.begin() ? first_s_ : std::prev(after)->second;
}

double Timeline::end_s() const { return ends_s_.empty() ? first_s_ : ends_s_.rbegin()->second; }

}  // namespace echelon::inline report
