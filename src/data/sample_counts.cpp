// SPDX-License-Identifier: Apache-2.0
// Counts the steps of an epoch, and the samples and labels that count in a step (sample_plan.hpp).
#include <algorithm>
#include <cmath>

#include "data/plan_orders.hpp"
#include "data/sample_plan.hpp"

namespace echelon::inline data {

std::int64_t SamplePlan::warmup_steps(std::int64_t epoch) const {
  if (warmup_batch_ == 0) return 0;
  const WarmUp& warmup = request_.warmup;
  const std::int64_t before = warmup.each_epoch ? 0 : epoch;
  if (warmup.steps > 0) return std::clamp<std::int64_t>(warmup.steps - before * warmup_longest_, 0, warmup_longest_);
  const double part = std::clamp(warmup.epochs - static_cast<double>(before), 0.0, 1.0);
  if (part == 1) return warmup_longest_;
  const double steps = std::ceil(part * static_cast<double>(samples_) / static_cast<double>(warmup_batch_));
  return std::min(static_cast<std::int64_t>(steps), warmup_longest_);
}

std::int64_t SamplePlan::steps_in(std::int64_t epoch) const {
  const std::int64_t warm = warmup_steps(epoch);
  if (warm == 0) return steps_;
  return warm + steps_of(std::max<std::int64_t>(0, samples_ - warm * warmup_batch_), global_batch_);
}

std::int64_t SamplePlan::steps_before(std::int64_t epoch) const {
  if (request_.warmup.each_epoch) return epoch * steps_;
  std::int64_t steps = 0, warm = 0;
  for (; warm < epoch && warmup_steps(warm) > 0; ++warm) steps += steps_in(warm);
  return steps + (epoch - warm) * steps_;
}

std::int64_t SamplePlan::owned(int replica) const {
  if (request_.series) {
    const std::lock_guard lock(orders_->mutex);
    std::int64_t windows = 0;
    for (std::int64_t row = row_of(replica); row < row_of(replica) + batch(replica); ++row)
      windows += series_rows(0).windows(row);
    return windows;
  }
  if (request_.stream) {
    const std::int64_t first = row_of(replica) * steps_;
    return std::clamp<std::int64_t>(samples_ - first, 0, batch(replica) * steps_);
  }
  if (sharding_ != Sharding::record) return stream_samples(replica);
  const std::int64_t first = row_of(replica);
  const std::int64_t whole = samples_ / global_batch_, rest = samples_ % global_batch_;
  const std::int64_t in_rest =
      request_.ragged == Ragged::drop ? 0 : std::clamp<std::int64_t>(rest - first, 0, batch(replica));
  return whole * batch(replica) + in_rest;
}

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

// Every rank asks in every step, so the common cases are answered without a loop over all replicas.
std::int64_t SamplePlan::counting(std::int64_t epoch, std::int64_t step) const {
  const std::int64_t all = step < warmup_steps(epoch) ? warmup_batch_ : global_batch_;
  if (request_.ragged != Ragged::zero_weight || step < full_steps_) return all;
  if (request_.stream && !request_.series)
    return std::clamp<std::int64_t>((samples_ - step + steps_ - 1) / steps_, 0, all);
  if (sharding_ == Sharding::record && request_.buckets.empty() && !request_.series) {
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
