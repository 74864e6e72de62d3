// SPDX-License-Identifier: Apache-2.0
#include "train/warmup.hpp"

#include <algorithm>

#include "train/positions.hpp"

namespace echelon::inline train {

Warmup::Warmup(const RunPlan& plan, int replica, const RunState& start)
    : plan_(plan), replica_(replica), epoch_(start.epoch) {
  for (int r = 0; r < plan.replicas; ++r) epoch_ = std::min(epoch_, position_of(start, plan.shards, r).epoch);
  weight_before_epoch_ = weight_until(plan_.shards, start, epoch_, 0);
  while (epoch_ <= start.epoch && next_weight() <= 0) over();
}

std::int64_t Warmup::end() const {
  const std::int64_t left = plan_.total_steps - plan_.shards.steps_before(epoch_);
  return std::clamp<std::int64_t>(left, 0, plan_.shards.warmup_steps(epoch_));
}

double Warmup::next_weight() const {
  const std::int64_t steps = end();
  if (steps == 0) return 0;
  double weight = weight_before_epoch_;
  for (std::int64_t step = 0; step < steps; ++step) weight += plan_.shards.weight(epoch_, step);
  return std::max(0.0, weight);
}

void Warmup::over() { weight_before_epoch_ += plan_.weight_of_epoch(epoch_++); }

bool Warmup::takes(const Position& at) const {
  return replica_ >= plan_.replicas || plan_.shards.takes(at.epoch, at.step_in_epoch, replica_);
}

std::int64_t Warmup::steps_to_join(const Position& at) const {
  return std::min(plan_.shards.warmup_steps(at.epoch) - at.step_in_epoch, plan_.total_steps - at.step);
}

}  // namespace echelon::inline train
