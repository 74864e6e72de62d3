// One setting against another on one measure, pair by pair of equal repetitions. Pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/evidence.hpp"
#include "report/statistics/looks.hpp"
#include "report/statistics/paired.hpp"

namespace echelon::inline report {

// What settings are compared by. `value` of a finished repetition: unknown where it was not measured, infinite where it
// was not reached.
struct Measure {
  std::string name;   // "samples/s"
  bool ratio = true;  // compared by the logarithms of ratios; else by differences
  bool more_is_better = true;
  Tested tested = Tested::timing;
  std::function<double(const Setting&, const Repetition&)> value;
};

// The value of a repetition so that larger is better, logarithms of ratios; minus infinity for a diverged one.
double oriented(const Measure& measure, const Setting& setting, const Repetition& repetition);
// Mean of these over all repetitions that have one; their median where one of them is minus infinity.
double typical(const Measure& measure, const Setting& setting);
// How much better is a threshold: 1.1 as it is compared.
double as_compared(const Measure& measure, double threshold);

class Contest {
 public:
  Contest(const Measure& measure, const Setting& a, const Setting& b);

  int pairs() const { return static_cast<int>(a_.size()); }
  bool enough() const { return pairs() >= least_repetitions(measure_.tested); }
  bool censored() const { return censored_; }
  // p of "a is better than b by more than the threshold", which is as it is compared: log 1.1, or a difference; and of
  // "by less". 1 where there are too few pairs.
  double better(double threshold, double threshold_error = 0) const;
  double worse(double threshold, double threshold_error = 0) const;
  double flips(double threshold) const;  // of `better`, by sign flips; unknown where there are too few pairs
  // How many times, or by how much, a is better. Of a censored contest the ratio or difference of medians, without an
  // interval.
  Effect effect() const;
  // Unknown where there is no spread to tell from.
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
