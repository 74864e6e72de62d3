// Epochs of steps with hooks around them, until the run is finished or asked to stop.
//
// After each step one small sum over the ranks carries the loss, the weight, whether a loss was not finite, and what
// signals asked for: so that all ranks know the step's exact loss and stop at the same step.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/group.hpp"
#include "config/schema.hpp"
#include "train/control/control.hpp"
#include "train/hooks/hook.hpp"
#include "train/phase.hpp"
#include "train/run_plan.hpp"
#include "train/run_state.hpp"
#include "train/step.hpp"

namespace echelon {

enum class Ending : std::uint8_t { finished, requeue, interrupted };

class Loop {
 public:
  // `replica`: that this rank trains, or plan.replicas on a server. Hooks in the order in which they are called.
  // Everything outlives the loop.
  Loop(const Config& config, const RunPlan& plan, int replica, Stepper& runner, Group& group, Control& control,
       RunState& state, PhaseBoard& phase, std::vector<Hook*> hooks);

  // From state.step on. A loss that is not finite is a CommonError (NumericError's code) on all ranks.
  Ending run();

 private:
  Ending one_step();
  StepInfo info_of_next() const;
  ControlWords words_of(const LossSums& losses);
  ControlSum agree(StepResult& result);
  [[noreturn]] void refuse_loss(const ControlSum& sum);
  [[noreturn]] void overflow(const StepOutcome& outcome);
  bool advance(const ControlSum& sum, const StepOutcome& outcome);
  void end_epoch(EpochRecord record);
  bool clock_wants_checkpoint();

  const Config& config_;
  const RunPlan& plan_;
  int replica_;
  Stepper& runner_;
  Group& group_;
  Control& control_;
  RunState& state_;
  PhaseBoard& phase_;
  std::vector<Hook*> hooks_;
  std::int64_t first_step_ = 0;  // of this attempt
  RankStep last_;                // of the step before
  double mark_s_ = 0;            // end of the step before
  double epoch_start_s_ = 0;
  double last_clock_checkpoint_s_ = 0;
};

}  // namespace echelon
