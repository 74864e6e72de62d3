// How many samples and labels count in a step (sample_plan.hpp).
#include <algorithm>

#include "data/sample_plan.hpp"

namespace echelon::inline data {

std::int64_t SamplePlan::counting(std::int64_t epoch, std::int64_t step, int replica) const {
  const Span at = span(epoch, step, replica);
  if (!takes(epoch, step, replica)) return 0;
  if (request_.ragged != Ragged::zero_weight) return batch(replica);
  if (request_.stream || !request_.buckets.empty()) {
    std::int64_t count = 0;
    for (const SampleSlot& slot : ids(epoch, step, replica)) count += slot.counts ? 1 : 0;
    return count;
  }
  return std::clamp<std::int64_t>(at.total - at.first, 0, batch(replica));
}

// Every rank asks in every step, so that most answers are found without a look at all replicas.
std::int64_t SamplePlan::counting(std::int64_t epoch, std::int64_t step) const {
  const std::int64_t all = step < warmup_steps(epoch) ? warmup_batch_ : global_batch_;
  if (request_.ragged != Ragged::zero_weight || step < full_steps_) return all;
  if (request_.stream) return std::clamp<std::int64_t>((samples_ - step + steps_ - 1) / steps_, 0, all);
  if (sharding_ == Sharding::record && request_.buckets.empty()) {
    const Span first = span(epoch, step, 0);
    return std::clamp<std::int64_t>(first.total - first.first, 0, all);
  }
  std::int64_t sum = 0;
  for (int r = 0; r < replicas(); ++r) sum += counting(epoch, step, r);
  return sum;
}

double SamplePlan::weight(std::int64_t epoch, std::int64_t step, int replica) const {
  return weighs_alike() ? weight_of_samples(counting(epoch, step, replica)) : weight_of(ids(epoch, step, replica));
}

double SamplePlan::weight_of(const std::vector<SampleSlot>& slots) const {
  double sum = 0;
  for (const SampleSlot& slot : slots)
    if (slot.counts)
      sum += static_cast<double>(weighs_alike() ? request_.weight
                                                : (*request_.weights)[static_cast<std::size_t>(slot.id)]);
  return sum;
}

double SamplePlan::weight(std::int64_t epoch, std::int64_t step) const {
  if (weighs_alike()) return weight_of_samples(counting(epoch, step));
  double sum = 0;
  for (int r = 0; r < replicas(); ++r) sum += weight(epoch, step, r);
  return sum;
}

}  // namespace echelon::inline data
