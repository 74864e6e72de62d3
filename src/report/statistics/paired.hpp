// Pairs of repetitions: the differences d of two settings, one a seed, and what they say about the true mean. Pure
// functions. Tests are one-sided: p is the probability, were the true mean at the threshold, of a result at least as
// far beyond it.
#pragma once

#include <vector>

namespace echelon::inline report {

inline constexpr double kConfidence = 0.95;  // of every interval

// Student's t of the mean. A spread of 0 makes p 0 or 1: equal bits in every pair are no chance.
struct PairedMean {
  int n = 0;
  double mean = 0, sd = 0;   // sd: of one difference, n - 1 in the denominator
  double low = 0, high = 0;  // interval of kConfidence
  // p of "the mean is more than the threshold"; a threshold that was estimated has a standard error of its own.
  double above(double threshold, double threshold_error = 0) const;
  double below(double threshold, double threshold_error = 0) const;
};
PairedMean paired_mean(const std::vector<double>& differences);  // two at least

// The p of "the mean is more than the threshold" without any assumption but symmetry: the share of all sign patterns of
// (d - threshold) whose sum is at least the one seen (Fisher 1935). Exact up to 20 pairs, 2^n patterns; beyond by
// 100,000 patterns drawn with a fixed seed, the one seen counted in.
double sign_flips_above(const std::vector<double>& differences, double threshold);

// The p of "values of a are larger than those of b" by the exact distribution of Wilcoxon's rank sum, ties by their
// mean rank; infinite values are allowed, and equal ones tie. Of unpaired samples: where pairs are positively
// correlated, p is too large rather than too small. Beyond 50 values a side by the normal approximation.
double rank_sum_above(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace echelon::inline report
