// The test by which two builds differ in a figure that fluctuates: what is estimated, its standard error, and how far
// two estimates are apart.
//
// Steps of an attempt are no independent samples (frequency of the processor, other load, epochs), and attempts of one
// build differ by more than their steps tell (memory layout, placement). Both levels count (Kalibera, Jones: Rigorous
// benchmarking in reasonable time, ISMM 2013):
//
//   within an attempt    the standard error of the figure by the stationary bootstrap (Politis, Romano: The stationary
//                        bootstrap, JASA 89, 1994), in blocks whose length follows the autocorrelation (Politis, White,
//                        Econometric Reviews 23, 2004; corrected by Patton, Politis, White, ibid. 28, 2009)
//   between attempts     s^2 / r of the r attempts of a side
//
// The larger of both variances is that of the side. Sides are compared by Welch's t test (Biometrika 34, 1947) on
// logarithms, so that differences are ratios. Everything is a pure function: equal input gives equal bits.
#pragma once

#include <cstddef>
#include <vector>

namespace echelon::inline report {

// A mean with its variance and the degrees of freedom of that variance (infinity: known).
struct Estimate {
  double value = 0, variance = 0, freedom = 0;
};

enum class RateOf : unsigned char { median_step, all_steps };  // median of the rates; their harmonic mean

// The logarithm of the rate of an attempt with the variance of the bootstrap; `rates` > 0 of consecutive steps, at
// least kLeastSteps. Degrees of freedom: blocks in the series minus 1. O(400 n).
inline constexpr std::size_t kLeastSteps = 20;
Estimate log_rate(const std::vector<double>& rates, RateOf what);

// Mean length of a block for the stationary bootstrap of the mean of this series, in [1, n / 3]; 1 for white noise.
double block_length(const std::vector<double>& series);

// A side of a comparison from its attempts (at least one). One attempt takes the variance between attempts from
// `other`, where that has several: both sides are starts of the same program.
Estimate combine_attempts(const std::vector<Estimate>& attempts, const std::vector<Estimate>& other);

struct Shift {
  double difference = 0;     // fresh - base
  double low = 0, high = 0;  // confidence interval of the level 1 - significance
  double lower_p = 1;        // probability, were both equal, of a difference at most this
  double higher_p = 1;       // likewise of one at least this
};
Shift welch_test(const Estimate& base, const Estimate& fresh, double significance);

// Attempts a side with which a test at this significance finds a true difference `shift` > 0 with probability 0.9,
// where one attempt of each side together have this variance; at least 2. By the normal distribution: where few are
// enough, a few too few.
double attempts_to_find(double shift, double variance, double significance);

}  // namespace echelon::inline report
