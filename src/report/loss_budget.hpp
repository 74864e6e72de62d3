// SPDX-License-Identifier: Apache-2.0
// The loss budget of a run on k ranks: its wall clock divided into the time that the samples would have taken at k
// times the rate of the best single worker, and the extra time that each cause took.
//
// Let t1(part) be the baseline's seconds per sample in a part, over all of its ranks. With k times as many ranks, the
// fair share of the part is t1(part) / k, and any time beyond it is loss. Evaluation, checkpoints, hooks and start-up
// have no fair share: all of their time is loss. Parts that took less than their share reduce the losses in proportion,
// so that no share is negative and all sum to 1. A run faster than k times the baseline has achieved 1.
#pragma once

#include <array>
#include <string>

#include "report/scaling.hpp"

namespace echelon::inline report {

struct LossBudget {
  double achieved = kUnknown;  // rate over k times the baseline's: the efficiency of the whole run
  double micro_batch = 0;      // forward and backward: smaller micro-batches, contention for memory and cores
  double exchange = 0;         // exposed exchange without the codec's part and the arrival skew
  double codec = 0;            // part of the exposed exchange, by the codec's share of all exchange time
  double skew = 0;             // waits for slower ranks
  double input = 0;            // waits for data
  double optimiser = 0;
  double split = 0;  // waits between the ranks of one replica
  double evaluation = 0;
  double checkpoint = 0;
  double hooks = 0;     // records, comparison of replicas
  double start_up = 0;  // until the first step, and warm-up
  double other = 0;
  bool known() const { return achieved == achieved; }
};

// Name and member, in the order of tables.
struct BudgetPart {
  const char* name;
  double LossBudget::*share;
};
inline constexpr std::array<BudgetPart, 13> kBudgetParts = {{{"achieved", &LossBudget::achieved},
                                                             {"micro-batch", &LossBudget::micro_batch},
                                                             {"exchange", &LossBudget::exchange},
                                                             {"codec", &LossBudget::codec},
                                                             {"skew", &LossBudget::skew},
                                                             {"input", &LossBudget::input},
                                                             {"optimizer", &LossBudget::optimiser},
                                                             {"split", &LossBudget::split},
                                                             {"evaluation", &LossBudget::evaluation},
                                                             {"checkpoint", &LossBudget::checkpoint},
                                                             {"hooks", &LossBudget::hooks},
                                                             {"start-up", &LossBudget::start_up},
                                                             {"other", &LossBudget::other}}};

// Seconds from the start of an attempt to its first step, plus warm-up. `step_s`: a step's time if the run has none.
double start_up_s(const RunFigures& run, double step_s);

// Unknown if either row lacks the split of its time. `baseline` is on one rank, or on the fewest ranks.
LossBudget loss_budget(const ScalingRow& row, const ScalingRow& baseline);

}  // namespace echelon::inline report
