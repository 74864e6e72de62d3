// The single worker that everything is compared with: the best that learns, not the fastest.
//
//   1. settings on one rank with a finished repetition; where there are none, those on the fewest ranks
//   2. with a goal that one of them reached: those that reached it in the largest share of their repetitions, of these
//      the one with the least time to it (the median, not reached counting as later than all)
//   3. else: those with the least share of failed and diverged repetitions, of these those whose final metric is, over
//      pairs of repetitions, not worse than the best one's by more than the margin; of these the one with the most
//      samples/s
#pragma once

#include "report/contest.hpp"
#include "report/evidence.hpp"

namespace echelon::inline report {

// Index of evidence.settings; -1: nothing finished in the environment.
int choose_baseline(const Evidence& evidence, const std::string& environment);

// How much worse than that of `base` a metric may be to count as equal: study.margin of its mean, or its standard
// deviation over repetitions, whichever is greater. Unknown where it is not known.
struct Margin {
  double value = kUnknown;
  bool of_seeds = false;  // the standard deviation
  double error = 0;       // of that, as it was estimated: sd / sqrt(2 (n - 1))
};
Margin margin_of(const Evidence& evidence, const Setting& base, const Measure& metric);

}  // namespace echelon::inline report
