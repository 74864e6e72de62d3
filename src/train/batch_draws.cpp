// SPDX-License-Identifier: Apache-2.0
#include "train/batch_draws.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace echelon::inline train {
namespace {

const std::vector<OpenSamples>& checked(const std::vector<OpenSamples>& open, std::int64_t samples) {
  if (std::any_of(open.begin(), open.end(), [&](const OpenSamples& range) { return range.end > samples; }))
    throw DataError(
        "the checkpoint lists samples beyond those of data.train, which has changed; run.restart = \"never\" starts "
        "over");
  return open;
}

}  // namespace

// Steps grow with numbers.
BatchDraws::BatchDraws(const SamplePlan& records, const std::vector<OpenSamples>& open, std::int64_t steps_per_epoch,
                       std::int64_t total_steps)
    : plan_(records, checked(open, records.samples())), steps_per_epoch_(steps_per_epoch) {
  std::int64_t low = 0, high = 1;
  const auto in_run = [&](std::int64_t number) { return step_of(plan_.at(number)) < total_steps; };
  while (in_run(high - 1)) high *= 2;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (in_run(middle))
      low = middle + 1;
    else
      high = middle;
  }
  end_ = low;
}

// An epoch may have more dealt batches than the shards had steps, if data.ragged drops samples.
std::int64_t BatchDraws::step_of(const Draw& draw) const {
  return draw.epoch * steps_per_epoch_ + std::min(draw.step_in_epoch, steps_per_epoch_ - 1);
}

}  // namespace echelon::inline train
