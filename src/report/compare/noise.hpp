// SPDX-License-Identifier: Apache-2.0
// The statistical test for a difference between two builds in a noisy figure: the estimate, its standard error, and how
// far two estimates are apart.
//
// Steps of an attempt are not independent samples (processor frequency, other load, epochs), and attempts of one build
// differ by more than their steps suggest (memory layout, placement). Both levels of variance count (Kalibera, Jones:
// Rigorous benchmarking in reasonable time, ISMM 2013):
//
//   within an attempt    the standard error of the figure by the stationary bootstrap (Politis, Romano: The stationary
//                        bootstrap, JASA 89, 1994), with a block length from the autocorrelation (Politis, White,
//                        Econometric Reviews 23, 2004; corrected by Patton, Politis, White, ibid. 28, 2009)
//   between attempts     s^2 / r for the r attempts of a side
//
// The variance of a side is the larger of the two. The sides are compared by Welch's t test (Biometrika 34, 1947) on
// logarithms, so that differences are ratios. All functions are pure: equal input gives equal bits.
#pragma once

#include <cstddef>
#include <vector>

namespace echelon::inline report {

// A mean with its variance and the degrees of freedom of that variance (infinity: the variance is known).
struct Estimate {
  double value = 0, variance = 0, freedom = 0;
};

enum class RateOf : unsigned char { median_step, all_steps };  // median of the steps' rates, or their harmonic mean

// Returns the logarithm of an attempt's rate with its bootstrap variance. `rates` are those of consecutive steps, > 0,
// at least kLeastSteps of them. The degrees of freedom are the blocks in the series minus 1. O(400 n).
inline constexpr std::size_t kLeastSteps = 20;
Estimate log_rate(const std::vector<double>& rates, RateOf what);

// Returns the mean block length for the stationary bootstrap of the series' mean, in [1, n / 3]; 1 for white noise.
double block_length(const std::vector<double>& series);

// Combines the attempts of one side (at least one). A single attempt takes the variance between attempts from `other`,
// if that has several: both sides are starts of the same program.
Estimate combine_attempts(const std::vector<Estimate>& attempts, const std::vector<Estimate>& other);

struct Shift {
  double difference = 0;     // fresh - base
  double low = 0, high = 0;  // confidence interval of the level 1 - significance
  double lower_p = 1;        // probability of a difference at most this large, if both were equal
  double higher_p = 1;       // probability of a difference at least this large, if both were equal
};
Shift welch_test(const Estimate& base, const Estimate& fresh, double significance);

// Returns the attempts per side with which a test at this significance finds a true difference `shift` > 0 with
// probability 0.9, at least 2. `variance` is that of one attempt of each side, added. Uses the normal distribution, so
// small results are slightly too small.
double attempts_to_find(double shift, double variance, double significance);

}  // namespace echelon::inline report
