// SPDX-License-Identifier: Apache-2.0
// Studies drawn at random, judged as a person would: at 3, 5, 10 and 20 repetitions until they are decided. Counts how
// often the verdict is wrong, and how often it is found.
#pragma once

#include <cstdint>

namespace echelon::test {

struct DrawnStudies {
  int settings = 1;     // settings beside one worker
  double gain = 1.0;    // true speed of every setting, relative to one worker
  double noise = 0.05;  // standard deviation of a rate's logarithm within a pair and setting
  double shared = 0.5;  // share of the variance that settings of one round have in common
  double least_gain = 0.10;
  double margin = 0.01;
  bool metric = false;  // has an accuracy, which is 0.9 for one worker
  double loss = 0;      // true accuracy that every setting loses
  double metric_noise = 0.002;
  int most = 20;      // repetitions at the last look
  bool looks = true;  // looks at 3, 5, 10, 20 until decided; else once, at `most`
};

struct Verdicts {
  int studies = 0, yes = 0, no = 0, undecided = 0;
  int covered = 0;         // yes-verdicts in which the recommended setting's interval holds the true gain
  double repetitions = 0;  // mean number at the decision
  double share(int count) const { return static_cast<double>(count) / studies; }
};

// Counts, at a fixed number of repetitions, how many intervals of the first setting's gain and of its metric hold the
// truth.
struct Coverage {
  int studies = 0, gain = 0, metric = 0;
  double share(int count) const { return static_cast<double>(count) / studies; }
};
Coverage cover_drawn(const DrawnStudies& drawn, int studies, std::uint64_t seed);

// Returns the p of "faster by more than the least gain" of the first setting, in one study of `repetitions`.
double least_p(const DrawnStudies& drawn, int repetitions, std::uint64_t seed, int study);

// Returns the standard deviation of a ratio's logarithm within a round, as drawn.
double paired_noise(const DrawnStudies& drawn);

Verdicts judge_drawn(const DrawnStudies& drawn, int studies, std::uint64_t seed);

}  // namespace echelon::test
