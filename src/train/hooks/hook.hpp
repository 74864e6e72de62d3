// Observers of the loop: timing, progress, metrics, checkpoints, evaluation, stops. The loop does not know them apart.
#pragma once

#include <cstdint>
#include <string>

#include "exchange/strategy.hpp"
#include "model/program.hpp"

namespace echelon {

// Where the time of one step went, on this rank. The parts sum to `total_s`; `other_s` is what none of them claims.
struct StepTimes {
  double total_s = 0;
  double data_wait_s = 0;
  double forward_s = 0;
  double backward_s = 0;
  double exchange_s = 0;  // compute thread blocked
  double optimiser_s = 0;
  double hooks_s = 0;  // checkpoints, evaluation
  double other_s() const { return total_s - data_wait_s - forward_s - backward_s - exchange_s - optimiser_s - hooks_s; }
};

struct StepRecord {
  std::int64_t step = 0;  // updates done, this one included
  std::int64_t epoch = 0;
  double learning_rate = 0;
  double loss = 0;     // mean over this rank's samples of the step
  double samples = 0;  // of the step over all replicas
  StepTimes times;
  StepOutcome outcome;
};

struct EpochRecord {
  std::int64_t epoch = 0;  // epochs done
  std::int64_t step = 0;
  double train_loss = 0;  // mean over all replicas
  double test_loss = 0;
  double test_accuracy = -1;  // -1: not evaluated
  double seconds = 0;
};

class Hook {
 public:
  virtual ~Hook() = default;
  virtual void run_begin(std::int64_t first_step) { (void)first_step; }
  virtual void step_end(const StepRecord& record) { (void)record; }
  virtual void epoch_end(EpochRecord& record) { (void)record; }
  virtual void run_end(bool finished) { (void)finished; }
};

}  // namespace echelon
