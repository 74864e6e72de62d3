// SPDX-License-Identifier: Apache-2.0
// The variation of the step time from step to step and from replica to replica: a factor of mean 1. A synchronous step
// waits for the slowest of k replicas; the mean of its factor is an order statistic.
//
//   measured    quantiles of the steps of a run, with linear interpolation; above the largest step an exponential tail
//               with the mean excess of the upper tenth (at least 3 steps)
//   described   lognormal: e^(jitter z) is drawn for each step, e^(spread z) for each replica and the whole run
#pragma once

#include <cstdint>
#include <vector>

namespace echelon::inline planner {

class Variation {
 public:
  // No variation: the factor is 1.
  Variation() = default;
  // `jitter` and `spread` are standard deviations of the logarithm, at least 0.
  static Variation lognormal(double jitter, double spread);
  // `seconds` are times of steps, at least one and all above 0; fewer than 4 give no variation.
  static Variation measured(std::vector<double> seconds);

  // Multiplies all deviations from 1 by `factor`.
  Variation widened(double factor) const;

  // The quantile u, 0 < u < 1, of the mean factor over `steps` consecutive steps of one replica. Independent steps
  // average out with the square root of their number; differences between replicas do not.
  double quantile(double u, double steps = 1) const;
  // The quantile u of the largest factor of k replicas: Q(u^(1/k)).
  double largest_quantile(double u, std::int64_t k, double steps = 1) const;
  // The mean of the largest factor of k replicas, by 64 of its quantiles Q(p^(1/k)); 1 for k = 1.
  double largest_of(std::int64_t k, double steps = 1) const;
  // The median of the factor in place j of k in rising order, 1 <= j <= k: about Q((j - 0.3) / (k + 0.4)) (Benard).
  double in_place(std::int64_t j, std::int64_t k) const;

  bool varies() const { return jitter_ > 0 || spread_ > 0 || (widened_ > 0 && excess_ > 0); }
  // Standard deviation of the logarithm: as described, or that of a normal with the measured quartiles.
  double jitter() const { return jitter_; }
  double spread() const { return spread_; }
  // Number of measured steps; 0: described. Quantiles of more replicas than this are extrapolated.
  std::int64_t measured_steps() const { return static_cast<std::int64_t>(sorted_.size()); }

 private:
  double measured_quantile(double u) const;

  double jitter_ = 0, spread_ = 0;
  std::vector<double> sorted_;  // factors in rising order
  double excess_ = 0;           // mean of the exponential tail
  double widened_ = 1;
};

// Returns z such that a standard normal is below it with probability u, 0 < u < 1; relative error below 1.2e-9 (Acklam
// 2003).
double normal_quantile(double u);

}  // namespace echelon::inline planner
