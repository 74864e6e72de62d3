// How the time of a step varies from step to step and from replica to replica: a factor of mean 1. A synchronous step
// waits for the slowest of k replicas, whose mean is an order statistic of this factor.
//
//   measured    quantiles of the steps of a run, linear between them; above the largest an exponential tail with the
//               mean excess of the upper tenth (at least 3 steps)
//   described   lognormal: e^(jitter z) drawn for each step, e^(spread z) for each replica and the whole run
#pragma once

#include <cstdint>
#include <vector>

namespace echelon::inline planner {

class Variation {
 public:
  // None: the factor is 1.
  Variation() = default;
  // Standard deviations of the logarithm, at least 0.
  static Variation lognormal(double jitter, double spread);
  // Of times of steps, at least one and all above 0; fewer than 4 give no variation.
  static Variation measured(std::vector<double> seconds);

  // The same with all deviations from 1 multiplied by `factor`.
  Variation widened(double factor) const;

  // The factor that is exceeded with probability 1 - u, 0 < u < 1, of the mean over `steps` steps in a row of one
  // replica. Independent steps average out with the root of their number, differences between replicas do not.
  double quantile(double u, double steps = 1) const;
  // Likewise of the largest factor of k replicas: Q(u^(1/k)).
  double largest_quantile(double u, std::int64_t k, double steps = 1) const;
  // Mean of the largest factor of k replicas; 1 for k = 1. By 64 quantiles of the largest, Q(p^(1/k)).
  double largest_of(std::int64_t k, double steps = 1) const;
  // The factor in place j of k in rising order, 1 <= j <= k: its median, about Q((j - 0.3) / (k + 0.4)) (Benard).
  double in_place(std::int64_t j, std::int64_t k) const;

  bool varies() const { return jitter_ > 0 || spread_ > 0 || (widened_ > 0 && excess_ > 0); }
  // Standard deviation of the logarithm: as described, or as the measured quartiles of a normal would have it.
  double jitter() const { return jitter_; }
  double spread() const { return spread_; }
  // Number of measured steps; 0: described. The largest of more than these is extrapolated.
  std::int64_t measured_steps() const { return static_cast<std::int64_t>(sorted_.size()); }

 private:
  double measured_quantile(double u) const;

  double jitter_ = 0, spread_ = 0;
  std::vector<double> sorted_;  // factors, rising
  double excess_ = 0;           // mean of the tail's exponential
  double widened_ = 1;
};

// z with probability u below it, 0 < u < 1; relative error below 1.2e-9 (Acklam 2003).
double normal_quantile(double u);

}  // namespace echelon::inline planner
