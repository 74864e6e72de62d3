// Epochs of steps with hooks around them, until the run is finished or asked to stop.
//
// The strategy declares when ranks meet (exchange/progress.hpp). At a meeting one small sum over the ranks carries the
// loss and the weight since the last one, whether a loss was not finite, and what signals asked for: so that all ranks
// know the exact loss and stop together. Between meetings a rank steps on by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "checkpoint/run_state.hpp"
#include "comm/group.hpp"
#include "config/schema.hpp"
#include "job/phase.hpp"
#include "train/control/control.hpp"
#include "train/hooks/hook.hpp"
#include "train/run_plan.hpp"
#include "train/step_clock.hpp"
#include "train/stepper.hpp"
#include "train/warmup.hpp"

namespace echelon::inline train {

enum class Ending : std::uint8_t { finished, requeue, interrupted };

class Loop {
 public:
  // `replica`: that this rank trains, or plan.replicas on a server. Hooks in the order in which they are called.
  // Everything outlives the loop.
  Loop(const Config& config, const RunPlan& plan, int replica, Stepper& runner, Group& group, Control& control,
       RunState& state, PhaseBoard& phase, std::vector<Hook*> hooks);

  // From state.at on. A loss that is not finite is a CommonError (NumericError's code) on all ranks.
  Ending run();

 private:
  bool has_step();
  Ending one_step();
  bool meets_at(std::int64_t step) const;
  Ending wait_for_the_others();
  Ending stand_at_meeting(const char* phase);
  std::uint32_t wait_for_call(StepRecord& record);
  // `call`: why rank 0 called this meeting (MeetingReason); 0 where ranks meet by the strategy's period.
  ControlSum meet(std::uint32_t call);
  Ending close(StepRecord& record, const ControlSum& sum, std::uint32_t call, bool epoch_over);
  void trace(bool trained, double hooks_start_s, double end_s);
  // Calls it with each hook, whose time is counted as the hook's part.
  template <class Call>
  void each_hook(const Call& call);
  void end_epoch(EpochRecord record);
  bool hooks_end_run() const;
  void begin_on_call();
  void plan_epoch();
  void plan_warmup();
  StepInfo info_of_next() const;
  void take_position(const ControlSum& sum);
  std::int64_t samples_of_this_rank(const StepInfo& info, std::int64_t end) const;
  ControlWords words_of(const LossSums& losses, std::int64_t step);
  void count_parts(const StepResult& result);
  void remember(const StepOutcome& outcome);
  [[noreturn]] void refuse_loss(const ControlSum& sum);
  [[noreturn]] void overflow(const StepOutcome& outcome);
  bool advance(std::int64_t next_step);
  bool clock_wants_checkpoint();

  const Config& config_;
  const RunPlan& plan_;
  int replica_;
  Stepper& runner_;
  Group& group_;
  Control& control_;
  const Clock& clock_;
  const bool on_call_;
  const DrawPlan* const draws_;          // null: each replica has its shard
  std::optional<Stepper::Drawn> drawn_;  // for the next step
  RunState& state_;
  PhaseBoard& phase_;
  std::vector<Hook*> hooks_;
  double told_compute_s_ = -1;  // of the step before, as this rank told the others; -1: none
  bool over_ = false;           // the run is finished
  bool came_ = false;           // to the meeting that is to come
  RankStep last_;               // of the step before
  double resident_mb_ = 0;      // memory of this process, read now and then ..
  unsigned throttled_ = 0;      // .. as is Device::throttled
  double looked_at_s_ = -1e9;
  StepClock step_clock_;
  double epoch_start_s_ = 0;
  double last_clock_checkpoint_s_ = 0;
  // Where replicas meet on call: epochs over, by all replicas' samples together; on rank 0, the weight of this
  // attempt's steps at which the next one is.
  std::int64_t epochs_ = 0;
  double epoch_weight_ = 0;
  std::int64_t trained_ = 0;      // steps of this rank in this attempt
  std::optional<Warmup> warmup_;  // where replicas meet on call
};

}  // namespace echelon::inline train
