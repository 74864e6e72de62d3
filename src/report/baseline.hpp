// SPDX-License-Identifier: Apache-2.0
// Chooses the baseline: the single worker that learns best, not the fastest one. Every setting is compared with it.
//
//   1. The candidates are the settings on one rank that have a finished repetition; without any, those on the fewest
//      ranks that have one.
//   2. If a candidate reached the goal: keep those that reached it in the largest share of their repetitions, then the
//      one with the least median time to it (a repetition that did not reach it counts as infinitely late).
//   3. Otherwise keep those with the smallest share of failed and diverged repetitions, then those whose final metric
//      is within the margin of the best one's, over pairs of repetitions; of these, the one with the most samples/s.
//      Rates within 1 % count as equal: then the plainest setting is chosen.
#pragma once

#include "report/contest.hpp"
#include "report/evidence.hpp"

namespace echelon::inline report {

// Returns an index into evidence.settings, or -1 if no run finished in the environment.
int choose_baseline(const Evidence& evidence, const std::string& environment);

// The amount by which another metric may be worse than that of `base` and still count as equal: the larger of
// study.margin times the metric's mean and its standard deviation over repetitions. Unknown if the metric is not known.
struct Margin {
  double value = kUnknown;
  bool of_seeds = false;  // `value` is the standard deviation over seeds
  double error = 0;       // standard error of that standard deviation: sd / sqrt(2 (n - 1))
};
Margin margin_of(const Evidence& evidence, const Setting& base, const Measure& metric);

}  // namespace echelon::inline report
