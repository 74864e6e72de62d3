// SPDX-License-Identifier: Apache-2.0
// Tests on paired repetitions: the differences d of two settings, one per seed, and what they say about the true mean.
// Pure functions. Tests are one-sided: p is the probability of a result at least as far beyond the threshold if the
// true mean were at the threshold.
#pragma once

#include <vector>

namespace echelon::inline report {

inline constexpr double kConfidence = 0.95;  // level of every interval

// Student's t test of the mean. With a spread of 0, p is 0 or 1: equal bits in every pair are not chance.
struct PairedMean {
  int n = 0;
  double mean = 0, sd = 0;   // sd: of one difference, with n - 1 in the denominator
  double low = 0, high = 0;  // interval of level kConfidence
  // p of "the mean is more than the threshold". An estimated threshold has a standard error of its own.
  double above(double threshold, double threshold_error = 0) const;
  double below(double threshold, double threshold_error = 0) const;
};
PairedMean paired_mean(const std::vector<double>& differences);  // at least two

// Returns p of "the mean is more than the threshold", assuming nothing but symmetry: the share of all sign patterns of
// (d - threshold) whose sum is at least the observed one (Fisher 1935). Exact, with 2^n patterns, up to 20 pairs;
// beyond that it uses 100,000 patterns drawn with a fixed seed, counting the observed pattern too.
double sign_flips_above(const std::vector<double>& differences, double threshold);

// Returns p of "values of a are larger than those of b" by the exact distribution of Wilcoxon's rank sum. Ties get
// their mean rank; infinite values are allowed, and equal ones tie. The test is for unpaired samples: with positively
// correlated pairs p is too large rather than too small. Uses the normal approximation beyond 50 values per side.
double rank_sum_above(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace echelon::inline report
