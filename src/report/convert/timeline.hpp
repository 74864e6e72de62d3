// SPDX-License-Identifier: Apache-2.0
// Wall-clock times within an attempt, computed from its start time and the times of its steps.
#pragma once

#include <map>

#include "report/metrics_file.hpp"
#include "report/record.hpp"

namespace echelon::inline report {

class Timeline {
 public:
  Timeline(const RunRecord& run, const MetricsRows& rows);
  double start_s() const { return start_s_; }  // start of the process, seconds since 1970 UTC; 0: not known
  double first_step_s() const { return first_s_; }
  double at_step(std::int64_t step) const;  // end of the step; between recorded steps, end of the one before
  double end_s() const;

 private:
  double start_s_ = 0, first_s_ = 0;
  std::map<std::int64_t, double> ends_s_;
};

}  // namespace echelon::inline report
