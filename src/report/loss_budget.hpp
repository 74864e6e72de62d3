// Where k times the best single worker went: the wall clock of a run on k ranks, divided into what the samples would
// have taken at k times the rate of the baseline and what every cause took beyond it.
//
// With t1(part) the baseline's seconds of a part for a sample, over all of its ranks, and k times as many ranks, a
// part's fair share for a sample is t1(part) / k, and what it took beyond that is its loss. Where parts took less than
// their share, that is set off against the losses in proportion, so that no share is negative and all sum to 1. A run
// at more than k times the baseline's rate has achieved 1.
#pragma once

#include <array>
#include <string>

#include "report/scaling.hpp"

namespace echelon::inline report {

struct LossBudget {
  double achieved = kUnknown;  // the rate reached, over k times the baseline's: its efficiency, the whole run counted
  double micro_batch = 0;      // forward and backward: smaller micro-batches, contention for memory and cores
  double exchange = 0;         // exposed, without the codec's part and arrival skew
  double codec = 0;            // of the exposed exchange, the share that coding has in the exchange, hidden or not
  double skew = 0;             // waits for slower ranks
  double input = 0;            // waits for data
  double optimiser = 0;
  double split = 0;  // between the ranks of one replica
  double evaluation = 0;
  double checkpoint = 0;
  double hooks = 0;     // records, comparison of replicas
  double start_up = 0;  // until the first step
  double other = 0;
  bool known() const { return achieved == achieved; }
};

// In the order of tables: name and member.
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

// Of an attempt: from the start to its first step, and its warm-up. `step_s`: of a step, where the run knows none.
double start_up_s(const RunFigures& run, double step_s);

// Unknown where either row has no split of its time. `baseline`: of one rank, or of the fewest.
LossBudget loss_budget(const ScalingRow& row, const ScalingRow& baseline);

}  // namespace echelon::inline report
