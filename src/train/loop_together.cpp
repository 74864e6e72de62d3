// SPDX-License-Identifier: Apache-2.0
// Ranks that step together: all count the same steps, and meet after every one, or by the strategy's period.
#include "base/check.hpp"
#include "base/spans.hpp"
#include "train/loop_account.hpp"

namespace echelon::inline train {
namespace {

class LoopTogether final : private LoopAccount {
 public:
  explicit LoopTogether(const LoopParts& parts)
      : LoopAccount(parts), every_step_(parts.control.progress().meets == Progress::Meets::every_step) {
    ECHELON_CHECK(parts.stepper.draws() == nullptr, "replicas that step together draw no batches");
  }

  Ending run() {
    begin();
    const PlacedSpans placed(step_clock_.watch(span_place));
    if (state_.step >= p_.plan.total_steps) {  // killed after its last checkpoint
      end_epoch({.epoch = state_.epoch, .step = state_.step, .last = true, .within = state_.step_in_epoch > 0});
      over_ = true;
    }
    if (SpanRecorder* spans = span_place.recorder) spans->after_step(state_.at.step, step_clock_.start_s());
    Ending ending = Ending::finished;
    while (!over_ && ending == Ending::finished) ending = one_step();
    return end(ending);
  }

 private:
  Ending one_step() {
    Step step{.info = info_of_next()};
    const StepInfo& info = step.info;
    step.info.meets = meets_at(info.step + 1);
    train(step, every_step_);
    const std::int64_t next_step = step.outcome.next_step;
    const bool meets = meets_at(next_step);
    if (!every_step_) {
      for (std::int64_t past = info.step + 1; past < next_step; ++past)
        ECHELON_CHECK(!meets_at(past), "step {} leads to step {} past a meeting", info.step, next_step);
      tell(step, meets);
    }
    p_.control.stepped();
    const ControlSum sum = meets ? meet() : ControlSum{};
    record(step);
    step.record.meets = meets;
    step.record.samples = static_cast<double>(p_.plan.shards.counting(info.epoch, info.step_in_epoch));
    step.record.tokens = p_.plan.per_token() ? info.weight : 0;
    const bool epoch_over = advance(next_step);
    state_.move_to(state_.at);
    step.record.allocated = allocation_count - step.allocated;
    return close(step.record, sum,
                 {.last = meets && state_.step >= p_.plan.total_steps,
                  .ends_epoch = meets && epoch_over,
                  .epochs = state_.epoch});
  }

  // True if ranks meet once `step` steps of the run are done; this rank has done fewer.
  bool meets_at(std::int64_t step) const {
    const bool ends_epoch =
        step >= p_.plan.total_steps || (state_.at.step_in_epoch + step - state_.at.step) % p_.plan.steps_per_epoch == 0;
    return p_.control.progress().meets_after(step, ends_epoch);
  }

  const bool every_step_;
};

}  // namespace

Ending run_together(const LoopParts& parts) { return LoopTogether(parts).run(); }

}  // namespace echelon::inline train
