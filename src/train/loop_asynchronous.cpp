// SPDX-License-Identifier: Apache-2.0
// Ranks that meet when rank 0 calls: each replica counts steps of its own, of its shard or of batches that it draws,
// and nobody waits for another one between meetings.
#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/spans.hpp"
#include "train/loop_account.hpp"
#include "train/positions.hpp"
#include "train/warmup.hpp"

namespace echelon::inline train {
namespace {

constexpr std::chrono::milliseconds kLookForCalls{2};
constexpr double kSomeWeight = 1e-9;  // of samples: less than any has

class AsynchronousLoop final : private LoopAccount {
 public:
  explicit AsynchronousLoop(const LoopParts& parts) : LoopAccount(parts), draws_(parts.stepper.draws()) {}

  Ending run() {
    begin();
    const PlacedSpans placed(step_clock_.watch(span_place));
    take_up();
    if (SpanRecorder* spans = span_place.recorder) spans->after_step(state_.at.step, step_clock_.start_s());
    Ending ending = Ending::finished;
    while (!over_ && ending == Ending::finished) {
      if (!has_step())
        ending = wait_for_the_others();
      else if (!warmup_ || warmup_->takes(state_.at))
        ending = one_step();
      else if (warmup_->waits(state_.at))
        ending = stand_at_meeting("waiting for the warm-up");
      else
        advance(state_.at.step + warmup_->steps_to_join(state_.at));
    }
    return end(ending);
  }

 private:
  // Takes up what earlier attempts have left, in which a slow replica may still have had batches of earlier epochs.
  void take_up() {
    epochs_ = state_.epochs();
    if (draws_ != nullptr) {
      for (std::int64_t epoch = draws_->first_epoch(); epoch < epochs_; ++epoch)
        epoch_weight_ += draws_->weight_of_epoch(epoch);
    } else {
      warmup_.emplace(p_.plan, p_.replica, state_);
      plan_warmup();
      if (p_.group.rank() == 0) epoch_weight_ = weight_until(p_.plan.shards, state_, epochs_, 0);
    }
    plan_epoch();
    take_position({});
  }

  // Returns true if this replica has another step to do; if batches are drawn, draws its batch. A rank that does not
  // train does no steps: it attends meetings, and is done before all others.
  bool has_step() {
    if (!p_.stepper.trains()) return false;
    if (draws_ == nullptr) return state_.at.step < p_.plan.total_steps;
    drawn_ = p_.stepper.draw();
    if (!drawn_) return false;
    state_.at = {.step = drawn_->step, .epoch = drawn_->draw.epoch, .step_in_epoch = drawn_->draw.step_in_epoch};
    return true;
  }

  Ending one_step() {
    Step step{.info = drawn_ ? info_of_drawn() : info_of_next()};
    step.info.meets = false;
    train(step, false);
    tell(step, false);
    p_.control.stepped();
    const std::uint32_t call = p_.control.called_together(++trained_);
    const ControlSum sum = call != 0 ? meet_when_called(call) : ControlSum{};
    record(step);
    step.record.meets = call != 0;
    if (drawn_) step.record.batch = drawn_->draw.number;
    advance(step.outcome.next_step);
    step.record.allocated = allocation_count - step.allocated;
    return close_when_called(step.record, sum, call);
  }

  StepInfo info_of_drawn() const {
    StepInfo info = rate();
    const auto samples = static_cast<double>(draws_->counting(drawn_->draw));
    info.local_weight = draws_->weight(drawn_->draw);
    info.weight = info.local_weight / samples * static_cast<double>(draws_->global_batch());
    return info;
  }

  std::int64_t samples_of_this_rank(const StepInfo& info, std::int64_t end) const override {
    return drawn_ ? draws_->counting(drawn_->draw) : LoopAccount::samples_of_this_rank(info, end);
  }

  // This replica has done all its steps, or does none; others have not.
  Ending wait_for_the_others() {
    p_.control.finished();
    return stand_at_meeting(p_.stepper.trains() ? "waiting for other replicas" : "serving");
  }

  // This rank waits at the next meeting until it is called, and trains nothing meanwhile.
  Ending stand_at_meeting(const char* phase) {
    StepRecord record;
    p_.phase.enter(phase);
    record.trained = false;
    record.epoch = state_.at.epoch;
    const std::uint32_t call = wait_for_call();
    return close_when_called(record, meet_when_called(call), call);
  }

  std::uint32_t wait_for_call() {
    const WatchedSpan span(SpanKind::meeting, clock_);
    p_.stepper.come_to_meeting();  // the next one: nobody is held until this rank's next step
    came_ = true;
    for (;;) {
      if (const std::uint32_t call = p_.control.called(trained_)) return call;
      const ControlWords words = words_of({}, state_.at.step);  // signals and the clock go on
      if (words.requeue || words.interrupt || words.checkpoint) p_.control.add(words, false);
      for (Hook* hook : p_.hooks) hook->waiting();
      std::this_thread::sleep_for(kLookForCalls);
    }
  }

  // `call`: why rank 0 called this meeting (MeetingReason).
  ControlSum meet_when_called(std::uint32_t call) {
    if ((call & kMeetingEpoch) != 0) {
      ++epochs_;
      plan_epoch();
    }
    if ((call & kMeetingJoin) != 0) {
      warmup_->over();
      plan_warmup();
    }
    return meet(!std::exchange(came_, false));
  }

  Ending close_when_called(StepRecord& record, const ControlSum& sum, std::uint32_t call) {
    record.call = call;
    if (record.meets) take_position(sum);
    return close(record, sum,
                 {.last = (call & kMeetingEnd) != 0, .ends_epoch = (call & kMeetingEpoch) != 0, .epochs = epochs_});
  }

  // Rank 0 calls the meeting at the end of epoch `epochs_`, once the weights of all its steps add up, or none is left.
  void plan_epoch() {
    if (p_.group.rank() != 0) return;
    epoch_weight_ += draws_ != nullptr ? draws_->weight_of_epoch(epochs_) : p_.plan.weight_of_epoch(epochs_);
    const bool last = position_at(p_.plan.shards, p_.plan.total_steps - 1).epoch <= epochs_;
    p_.control.set_epoch_weight(std::max(epoch_weight_, kSomeWeight), last);
  }

  void plan_warmup() {
    if (p_.group.rank() == 0) p_.control.set_join_weight(warmup_->next_weight());
  }

  // Replicas have no steps in common: at a meeting the run takes the position of the furthest replica. The steps of
  // each say what is trained, unless batches are drawn. Collective.
  void take_position(const ControlSum& sum) {
    state_.epochs_over = epochs_;
    const std::int64_t most = std::max(state_.step, static_cast<std::int64_t>(sum.most_steps));
    state_.move_to(position_at(p_.plan.shards, most));
    state_.replica_steps = steps_by_replica(p_.group, p_.plan.replicas, p_.replica, state_.at.step);
    if (draws_ != nullptr) state_.replica_steps.clear();
  }

  const DrawPlan* const draws_;          // null: each replica has its shard
  std::optional<Stepper::Drawn> drawn_;  // for the next step
  std::optional<Warmup> warmup_;         // unless batches are drawn
  bool came_ = false;                    // to the meeting that is to come
  std::int64_t trained_ = 0;             // steps of this rank in this attempt
  std::int64_t epochs_ = 0;              // that are over, by all replicas' samples together
  double epoch_weight_ = 0;              // on rank 0: of this attempt's steps, at which the next epoch is over
};

}  // namespace

Ending run_asynchronous(const LoopParts& parts) { return AsynchronousLoop(parts).run(); }

}  // namespace echelon::inline train
