// When things happened in an attempt, from the time it was started and the times of its steps.
#pragma once

#include <map>

#include "report/metrics_file.hpp"
#include "report/record.hpp"

namespace echelon::inline report {

class Timeline {
 public:
  Timeline(const RunRecord& run, const MetricsRows& rows);
  double start_s() const { return start_s_; }  // of the process, since 1970, UTC; 0: not known
  double first_step_s() const { return first_s_; }
  double at_step(std::int64_t step) const;  // its end; between recorded steps that of the one before
  double end_s() const;

 private:
  double start_s_ = 0, first_s_ = 0;
  std::map<std::int64_t, double> ends_s_;
};

}  // namespace echelon::inline report
