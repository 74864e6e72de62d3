#include "train/warmup.hpp"

#include <algorithm>

namespace echelon::inline train {

double weight_of_steps(const SamplePlan& plan, std::int64_t epoch, std::int64_t first, std::int64_t end) {
  double weight = 0;
  for (std::int64_t step = first; step < end; ++step) weight += plan.weight(epoch, step);
  return weight;
}

Warmup::Warmup(const RunPlan& plan, int replica, const RunState& start)
    : plan_(plan),
      replica_(replica),
      epoch_(start.epoch),
      first_(start.step_in_epoch),
      epoch_begins_(start.step - start.step_in_epoch) {
  if (first_ >= end()) over();
}

std::int64_t Warmup::end() const {
  return std::clamp<std::int64_t>(plan_.total_steps - epoch_begins_, 0, plan_.shards.warmup_steps(epoch_));
}

double Warmup::next_weight() const {
  if (end() <= first_) return 0;
  return weight_before_epoch_ + weight_of_steps(plan_.shards, epoch_, first_, end());
}

void Warmup::over() {
  const std::int64_t steps = plan_.shards.steps_in(epoch_);
  weight_before_epoch_ += weight_of_steps(plan_.shards, epoch_, first_, steps);
  epoch_begins_ += steps;
  ++epoch_;
  first_ = 0;
}

bool Warmup::takes(const RunState& at) const {
  return replica_ >= plan_.replicas || plan_.shards.takes(at.epoch, at.step_in_epoch, replica_);
}

std::int64_t Warmup::steps_to_join(const RunState& at) const {
  return std::min(plan_.shards.warmup_steps(at.epoch) - at.step_in_epoch, plan_.total_steps - at.step);
}

}  // namespace echelon::inline train
