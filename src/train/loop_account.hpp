// SPDX-License-Identifier: Apache-2.0
// The account of a step that both loops keep: its times, what this rank tells the others, and its record for the hooks.
#pragma once

#include "base/allocations.hpp"
#include "train/loop.hpp"
#include "train/step_clock.hpp"

namespace echelon::inline train {

class LoopAccount {
 protected:
  explicit LoopAccount(const LoopParts& parts)
      : p_(parts), state_(parts.state), clock_(parts.control.clock()), step_clock_(clock_) {}
  virtual ~LoopAccount() = default;
  LoopAccount(const LoopAccount&) = delete;

  struct Step {
    AllocationCount allocated = allocation_count;
    StepInfo info = {};
    LossSums own = {};  // of this rank
    StepOutcome outcome = {};
    StepRecord record = {};
  };
  // The consequences of a step or a meeting.
  struct Closing {
    bool last = false, ends_epoch = false;
    std::int64_t epochs = 0;  // done by all replicas
  };

  // Collective: the records of all ranks begin when it returns.
  void begin();
  Ending end(Ending ending);
  // The next step of a replica that has its shard. rate: only its number, epoch and learning rate, at any position.
  StepInfo info_of_next() const;
  StepInfo rate() const;
  // Runs the step. `at_once`: ranks meet after it, and its losses are told as soon as they are known.
  void train(Step& step, bool at_once);
  // Tells the losses of a step after which ranks do not always meet.
  void tell(const Step& step, bool meets);
  // Waits until all ranks have come, and returns the sum over them; `comes`: tells the strategy that this rank does.
  ControlSum meet(bool comes = false);
  // Fills in the record of a step, with the samples of this rank. NumericError if no loss scale helps.
  void record(Step& step);
  // The samples of this rank from a step to before step `end`.
  virtual std::int64_t samples_of_this_rank(const StepInfo& info, std::int64_t end) const;
  // Moves to the step that the replica joins next; returns true if an epoch ends on the way.
  bool advance(std::int64_t next_step);
  // Hands a step or a meeting to the hooks, and begins the next step.
  Ending close(StepRecord& record, const ControlSum& sum, const Closing& closing);
  void end_epoch(EpochRecord record);
  ControlWords words_of(const LossSums& losses, std::int64_t step);

  const LoopParts p_;
  RunState& state_;
  const Clock& clock_;
  StepClock step_clock_;
  bool over_ = false;  // the run is finished

 private:
  void trace(bool trained, double hooks_start_s);
  // Calls it with each hook, whose time is counted as the hook's part.
  template <class Call>
  void each_hook(const Call& call);
  bool hooks_end_run() const;
  void remember(const StepOutcome& outcome);
  [[noreturn]] void refuse_loss(const ControlSum& sum);
  [[noreturn]] void overflow(const StepOutcome& outcome);
  bool clock_wants_checkpoint();

  RankStep last_;               // of the step before
  double told_compute_s_ = -1;  // of the step before, as this rank told the others; -1: none
  double resident_mb_ = 0;      // memory of this process, and Device::throttled, as they were at looked_at_s_
  unsigned throttled_ = 0;
  double looked_at_s_ = -1e9;
  double epoch_start_s_ = 0;
  double last_clock_checkpoint_s_ = 0;
};

// The two loops. Together: replicas meet after every step or by period, and all ranks count the same steps.
// Asynchronous: each replica counts its own steps, and meets the others when rank 0 calls.
Ending run_together(const LoopParts& parts);
Ending run_asynchronous(const LoopParts& parts);

}  // namespace echelon::inline train
