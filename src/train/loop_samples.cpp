// The steps of this rank: their epochs, learning rates, and the samples that they count.
#include "optim/schedule.hpp"
#include "train/loop.hpp"

namespace echelon::inline train {

StepInfo Loop::info_of_next() const {
  const Position& at = state_.at;
  StepInfo info;
  info.step = at.step, info.epoch = at.epoch, info.step_in_epoch = at.step_in_epoch;
  info.learning_rate = scaling_factor(config_.optimiser, plan_.batch.global) *
                       learning_rate_at(config_.optimiser, at.step, plan_.steps_per_epoch, plan_.total_steps);
  if (drawn_) {
    const auto samples = static_cast<double>(draws_->counting(drawn_->draw));
    info.local_weight = draws_->weight(drawn_->draw);
    info.weight = info.local_weight / samples * static_cast<double>(draws_->global_batch());
    return info;
  }
  const SamplePlan& shards = runner_.shards(plan_.shards);
  info.weight = shards.weight(at.epoch, at.step_in_epoch);
  for (const int replica : plan_.sources(replica_))
    info.local_weight += shards.weight(at.epoch, at.step_in_epoch, replica);
  return info;
}

// Of the steps from `info` to before `end`.
std::int64_t Loop::samples_of_this_rank(const StepInfo& info, std::int64_t end) const {
  if (drawn_) return draws_->counting(drawn_->draw);
  std::int64_t samples = 0, epoch = info.epoch, step_in_epoch = info.step_in_epoch;
  for (std::int64_t step = info.step; step < end; ++step) {
    for (const int replica : plan_.sources(replica_)) samples += plan_.shards.counting(epoch, step_in_epoch, replica);
    if (++step_in_epoch == plan_.shards.steps_in(epoch)) step_in_epoch = 0, ++epoch;
  }
  return samples;
}

}  // namespace echelon::inline train
