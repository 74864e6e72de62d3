// SPDX-License-Identifier: Apache-2.0
// Judges the training losses of all replicas at the end of an attempt: how much they oscillate, and whether anything
// was learned (figures loss_oscillation and findings).
#pragma once

#include <string>
#include <vector>

#include "comm/group.hpp"
#include "report/figures.hpp"
#include "run/ready.hpp"

namespace echelon::inline run {

// The loss of an attempt of one run, as far as it was finite, from its first step on.
struct LearningCurve {
  std::vector<double> losses;  // by step, mean over the replicas
  double first = 0;            // of the first step of the run, which may be an earlier attempt's
  double chance = 0;           // of guessing among classes; 0: not known
};
// "" where the loss has fallen, or too few steps were done to tell; else a sentence: it has not moved, or has come back
// to where a model stands that has learned nothing.
std::string nothing_learned(const LearningCurve& curve);

// Collective over the ranks that train; `run` is complete on rank 0.
void take_learning(const Ready& ready, Group& workers, RunFigures& run);

}  // namespace echelon::inline run
