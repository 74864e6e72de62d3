// Observers of the loop: evaluation, checkpoints, agreement, metrics, progress. The loop does not know them apart.
//
// Once a step, in this order and for each hook in the order they were given:
//   step_end       the update is done and the run's state counts it; hooks may save, compare, stop by throwing
//   epoch_end      only where an epoch (or the run) ends with this step; evaluation fills the record for later hooks
//   step_recorded  the step's times are final, what the hooks above took included
// Every rank calls the same hooks at the same steps, so that a hook may use the group.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "exchange/strategy.hpp"
#include "model/program.hpp"

namespace echelon {

// Where the time of one step went, on this rank. The parts sum to `total_s`; `other_s` is what none of them claims.
struct StepTimes {
  double total_s = 0;
  double data_wait_s = 0;  // waiting for the loader and copying to the device
  double forward_s = 0;
  double backward_s = 0;
  double split_s = 0;     // waiting for the other ranks of the same replica
  double exchange_s = 0;  // compute thread blocked, the step's control sum included
  double optimiser_s = 0;
  double hooks_s = 0;  // checkpoints, evaluation, records; before these, the wait for the exchange's end
  double other_s() const {
    return total_s - data_wait_s - forward_s - backward_s - split_s - exchange_s - optimiser_s - hooks_s;
  }
};

// What every rank tells every other of its last step, with the step's control words.
struct RankStep {
  double compute_s = 0;   // forward, backward and waiting for data: what it took to be ready for the exchange
  double exposed_s = 0;   // the compute thread blocked on the exchange
  double exchange_s = 0;  // the exchange from start to finish, hidden and exposed
  double wire_bytes = 0;  // sent for it
};
// Largest compute_s less the smallest: how far apart the ranks came to the exchange.
double arrival_skew_s(const std::vector<RankStep>& ranks);

struct StepRecord {
  std::int64_t step = 0;   // updates done, this one included
  std::int64_t epoch = 0;  // epochs done before this step
  double learning_rate = 0;
  double loss = 0;     // mean over the step's labels, over all replicas; NaN where the device computes nothing
  double samples = 0;  // of the step over all replicas
  double tokens = 0;   // likewise, where there is a label a token; else 0
  StepTimes times;
  StepOutcome outcome;
  std::vector<RankStep> ranks;     // of the step before, by rank; empty with one rank and at the first step
  bool checkpoint_wanted = false;  // asked for by a signal or the clock; all ranks agree
  bool stopping = false;           // the attempt ends here, before its time; all ranks agree
};

struct EpochRecord {
  std::int64_t epoch = 0;  // epochs done
  std::int64_t step = 0;
  double train_loss = std::numeric_limits<double>::quiet_NaN();  // mean over the epoch's samples; NaN: not known
  double test_loss = -1;                                         // -1: not evaluated
  double test_accuracy = -1;  // -1: not evaluated, or the loss knows no right and wrong
  bool per_token = false;     // losses and accuracy are means over tokens
  double seconds = 0;
  bool last = false;  // the run is finished
  bool tested() const { return test_loss >= 0; }
};

class Hook {
 public:
  virtual ~Hook() = default;
  virtual void run_begin(std::int64_t first_step) { (void)first_step; }
  virtual void step_end(const StepRecord& record) { (void)record; }
  virtual void epoch_end(EpochRecord& record) { (void)record; }
  virtual void step_recorded(const StepRecord& record) { (void)record; }
  virtual void run_end(bool finished) { (void)finished; }
};

}  // namespace echelon
