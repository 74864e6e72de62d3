// SPDX-License-Identifier: Apache-2.0
#include "train/positions.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/check.hpp"

namespace echelon::inline train {

Position position_after(const SamplePlan& shards, Position from, std::int64_t steps) {
  from.step += steps, from.step_in_epoch += steps;
  for (; from.step_in_epoch >= shards.steps_in(from.epoch); ++from.epoch)
    from.step_in_epoch -= shards.steps_in(from.epoch);
  return from;
}

Position position_at(const SamplePlan& shards, std::int64_t step) { return position_after(shards, {}, step); }

Position position_of(const RunState& state, const SamplePlan& shards, int replica) {
  const auto r = static_cast<std::size_t>(replica);
  if (r < state.replica_steps.size()) return position_at(shards, state.replica_steps[r]);
  return state.position();
}

std::vector<std::int64_t> steps_by_replica(Group& ranks, int replicas, int replica, std::int64_t steps) {
  const std::array<double, 2> own = {static_cast<double>(replica), static_cast<double>(steps)};
  const std::vector<double> all = ranks.gather(std::span<const double>(own));
  std::vector<std::int64_t> by_replica(static_cast<std::size_t>(replicas), -1);
  for (std::size_t i = 0; i < all.size(); i += 2)
    if (all[i] < replicas) by_replica[static_cast<std::size_t>(all[i])] = static_cast<std::int64_t>(all[i + 1]);
  return by_replica;
}

double weight_until(const SamplePlan& shards, const RunState& state, std::int64_t epoch, std::int64_t step_in_epoch) {
  const std::int64_t end = shards.steps_before(epoch) + step_in_epoch;
  double weight = 0;
  for (int replica = 0; replica < shards.replicas(); ++replica) {
    // Between the two, whichever is first. The epoch counts: an earlier plan may have had other steps.
    const Position own = position_of(state, shards, replica);
    const std::int64_t at = shards.steps_before(own.epoch) + own.step_in_epoch;
    const double sign = at <= end ? 1 : -1;
    Position next = at <= end ? own : Position{.step = end, .epoch = epoch, .step_in_epoch = step_in_epoch};
    for (std::int64_t left = std::abs(end - at); left > 0; --left) {
      for (; next.step_in_epoch >= shards.steps_in(next.epoch); ++next.epoch) next.step_in_epoch = 0;
      weight += sign * shards.weight(next.epoch, next.step_in_epoch++, replica);
    }
  }
  return weight;
}

std::vector<OpenSamples> open_samples(const SamplePlan& were, const std::vector<std::int64_t>& steps,
                                      const SamplePlan& records) {
  ECHELON_CHECK_EQ(std::ssize(steps), were.replicas(), "positions of replicas");
  ECHELON_CHECK_EQ(were.samples(), records.samples(), "samples");
  std::vector<Position> at;
  std::int64_t first = 0, last = 0;
  for (const std::int64_t done : steps) {
    at.push_back(position_at(were, done));
    first = at.size() == 1 ? at[0].epoch : std::min(first, at.back().epoch);
    last = std::max(last, at.back().epoch);
  }
  std::vector<std::int64_t> all(static_cast<std::size_t>(records.samples()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<OpenSamples> open;
  for (std::int64_t epoch = first; epoch <= last; ++epoch) {
    std::vector<bool> trained(static_cast<std::size_t>(records.ids_end()));
    for (std::size_t r = 0; r < at.size(); ++r) {
      const std::int64_t end = at[r].epoch > epoch   ? were.steps_in(epoch)
                               : at[r].epoch < epoch ? 0
                                                     : at[r].step_in_epoch;
      for (std::int64_t step = 0; step < end; ++step)
        for (const SampleSlot& slot : were.ids(epoch, step, static_cast<int>(r)))
          if (slot.counts) trained[static_cast<std::size_t>(slot.id)] = true;
    }
    const std::vector<std::int64_t> ids = records.ids_at(epoch, all);
    const std::size_t before = open.size();
    for (std::int64_t position = 0; position < std::ssize(ids); ++position) {
      if (trained[static_cast<std::size_t>(ids[static_cast<std::size_t>(position)])]) continue;
      if (open.size() > before && open.back().end == position)
        ++open.back().end;
      else
        open.push_back({.epoch = epoch, .first = position, .end = position + 1});
    }
  }
  // The whole epoch of the furthest one is trained: nothing is left before the next epoch.
  if (open.empty() || open.back().epoch < last)
    open.push_back({.epoch = last + 1, .first = 0, .end = records.samples()});
  return open;
}

std::int64_t samples_before(const std::vector<OpenSamples>& open, const SamplePlan& records, const Position& from) {
  const std::int64_t begin = std::min(records.samples(), from.step_in_epoch * records.global_batch());
  std::int64_t samples = 0;
  for (const OpenSamples& range : open) {
    if (range.epoch < from.epoch) samples += range.count();
    if (range.epoch == from.epoch) samples += std::clamp<std::int64_t>(begin - range.first, 0, range.count());
  }
  return samples;
}

}  // namespace echelon::inline train
