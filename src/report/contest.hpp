// SPDX-License-Identifier: Apache-2.0
// Compares two settings by one measure, over pairs of repetitions of the same round. Pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/evidence.hpp"
#include "report/statistics/looks.hpp"
#include "report/statistics/paired.hpp"

namespace echelon::inline report {

// The quantity by which settings are compared. `value` takes a finished repetition and returns unknown if the quantity
// was not measured, infinity if the goal was not reached.
struct Measure {
  std::string name;   // "samples/s"
  bool ratio = true;  // compared by the logarithm of the ratio; otherwise by the difference
  bool more_is_better = true;
  Tested tested = Tested::timing;
  std::function<double(const Setting&, const Repetition&)> value;
};

// Returns the repetition's value so that larger is better, as a logarithm for ratios; minus infinity if it diverged.
double oriented(const Measure& measure, const Setting& setting, const Repetition& repetition);
// Returns the mean of `oriented` over all repetitions that have a value; their median if one is minus infinity.
double typical(const Measure& measure, const Setting& setting);
// Converts a threshold for "better by how much" to the compared scale: log 1.1 for the ratio 1.1.
double as_compared(const Measure& measure, double threshold);

class Contest {
 public:
  Contest(const Measure& measure, const Setting& a, const Setting& b);

  int pairs() const { return static_cast<int>(a_.size()); }
  bool enough() const { return pairs() >= least_repetitions(measure_.tested); }
  bool censored() const { return censored_; }
  // Return p of "a is better than b by more than the threshold" and of "by less than the threshold". The threshold is
  // on the compared scale: log 1.1, or a difference. 1 where there are too few pairs.
  double better(double threshold, double threshold_error = 0) const;
  double worse(double threshold, double threshold_error = 0) const;
  double flips(double threshold) const;  // p of `better` by sign flips; unknown with too few pairs
  // Returns by what factor, or by how much, a is better. For a censored contest it is the ratio or difference of the
  // medians, without an interval.
  Effect effect() const;
  // Unknown if there are too few pairs to estimate the spread.
  double sd() const { return censored_ || pairs() < 2 ? kUnknown : t_.sd; }
  double mean() const { return t_.mean; }
  const char* method() const { return censored_ ? "rank sum" : "paired t"; }

 private:
  const Measure& measure_;
  std::vector<double> a_, b_, differences_;
  bool censored_ = false;
  PairedMean t_;
};

}  // namespace echelon::inline report
