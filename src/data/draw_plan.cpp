// SPDX-License-Identifier: Apache-2.0
#include "data/draw_plan.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace echelon::inline data {

DrawPlan::DrawPlan(SamplePlan plan, const std::vector<OpenSamples>& open) : plan_(std::move(plan)) {
  ECHELON_CHECK(plan_.sharding() == Sharding::record && !plan_.stream() && plan_.buckets().empty(),
                "batches are drawn from one order of all records");
  for (int replica = 1; replica < replicas(); ++replica)
    ECHELON_CHECK_EQ(plan_.batch(replica), batch(), "drawn batches have one size");
  for (const OpenSamples& range : open) {
    ECHELON_CHECK(range.epoch >= 0 && 0 <= range.first && range.first <= range.end && range.end <= samples(),
                  "positions [{}, {}) of epoch {}", range.first, range.end, range.epoch);
    if (parts_.empty() || parts_.back().epoch != range.epoch) {
      // Epochs in between are complete.
      ECHELON_CHECK(parts_.empty() || range.epoch > parts_.back().epoch, "epoch {} after {}", range.epoch,
                    parts_.back().epoch);
      parts_.push_back({.epoch = range.epoch, .open = {}, .samples = 0, .first = 0, .batches = 0});
    }
    parts_.back().open.push_back(range);
    parts_.back().samples += range.count();
  }
  for (Part& part : parts_) {
    part.first = whole_first_;
    part.batches = batches_of(part.samples);
    whole_first_ += part.batches;
    whole_epoch_ = part.epoch + 1;
  }
}

std::int64_t DrawPlan::batches_of(std::int64_t samples) const {
  return plan_.ragged() == Ragged::drop ? samples / batch() : (samples + batch() - 1) / batch();
}

const DrawPlan::Part* DrawPlan::part_of(std::int64_t epoch) const {
  const auto found = std::find_if(parts_.begin(), parts_.end(), [&](const Part& part) { return part.epoch == epoch; });
  return found == parts_.end() ? nullptr : &*found;
}

std::int64_t DrawPlan::open_samples(std::int64_t epoch) const {
  if (epoch >= whole_epoch_) return samples();
  const Part* part = part_of(epoch);
  return part ? part->samples : 0;
}

Draw DrawPlan::at(std::int64_t number) const {
  ECHELON_CHECK_GE(number, 0);
  Draw draw{.number = number, .epoch = 0, .batch = 0, .step_in_epoch = 0};
  if (number >= whole_first_) {
    const std::int64_t each = batches_of(samples()), beyond = number - whole_first_;
    ECHELON_CHECK_GT(each, 0, "an epoch has at least one batch");
    draw.epoch = whole_epoch_ + beyond / each;
    draw.batch = beyond % each;
  } else {
    const Part& part =
        *std::find_if(parts_.begin(), parts_.end(), [&](const Part& one) { return number < one.first + one.batches; });
    draw.epoch = part.epoch;
    draw.batch = number - part.first;
  }
  const std::int64_t open = open_samples(draw.epoch), first = draw.batch * batch();
  const std::int64_t last = plan_.steps_per_epoch() - 1;
  const bool ends_epoch = draw.batch + 1 == batches_of(open);
  draw.step_in_epoch = ends_epoch ? last : std::min(last, (samples() - open + first) / global_batch());
  return draw;
}

std::vector<OpenSamples> DrawPlan::runs_of(std::int64_t epoch, std::int64_t from, std::int64_t to) const {
  if (epoch >= whole_epoch_) return {{.epoch = epoch, .first = from, .end = to}};
  std::vector<OpenSamples> runs;
  const Part* part = part_of(epoch);
  ECHELON_CHECK(part != nullptr, "nothing of epoch {} is open", epoch);
  std::int64_t begin = 0;  // index of the range's first sample
  for (const OpenSamples& range : part->open) {
    const std::int64_t low = std::max(from, begin), high = std::min(to, begin + range.count());
    if (low < high)
      runs.push_back({.epoch = epoch, .first = range.first + low - begin, .end = range.first + high - begin});
    begin += range.count();
  }
  return runs;
}

std::vector<SampleSlot> DrawPlan::ids(const Draw& draw) const {
  const std::int64_t open = open_samples(draw.epoch), from = draw.batch * batch(), to = from + batch();
  std::vector<std::int64_t> positions;
  for (const OpenSamples& run : runs_of(draw.epoch, from, std::min(to, open)))
    for (std::int64_t position = run.first; position < run.end; ++position) positions.push_back(position);
  // Fills up with the first samples of the epoch, even if they are not open: a resumed run repeats the same ones.
  for (std::int64_t filled = 0; std::ssize(positions) < batch(); ++filled) positions.push_back(filled % samples());
  std::vector<SampleSlot> slots;
  const bool repeats = plan_.ragged() != Ragged::zero_weight;
  for (const std::int64_t id : plan_.ids_at(draw.epoch, positions))
    slots.push_back({.id = id, .counts = repeats || from + std::ssize(slots) < open});
  return slots;
}

std::int64_t DrawPlan::counting(const Draw& draw) const {
  if (plan_.ragged() != Ragged::zero_weight) return batch();
  return std::min(batch(), open_samples(draw.epoch) - draw.batch * batch());
}

double DrawPlan::weight(const Draw& draw) const { return plan_.weight_of(ids(draw)); }

double DrawPlan::weight_of_epoch(std::int64_t epoch) const {
  double sum = 0;
  const std::int64_t open = open_samples(epoch);
  for (Draw draw{.number = 0, .epoch = epoch, .batch = 0, .step_in_epoch = 0}; draw.batch < batches_of(open);
       ++draw.batch)
    sum += plan_.weighs_alike() ? plan_.weight_of_samples(counting(draw)) : weight(draw);
  return sum;
}

std::vector<OpenSamples> DrawPlan::open_after(std::int64_t next, const std::vector<std::int64_t>& held) const {
  std::vector<OpenSamples> open;
  const auto add = [&](const OpenSamples& range) {
    if (!open.empty() && open.back().epoch == range.epoch && open.back().end == range.first)
      open.back().end = range.end;
    else
      open.push_back(range);
  };
  // Positions within an epoch increase with the numbers.
  for (const std::int64_t number : held) {
    ECHELON_CHECK_LT(number, next, "held, but not drawn");
    const Draw draw = at(number);
    const std::int64_t from = draw.batch * batch();
    for (const OpenSamples& run : runs_of(draw.epoch, from, std::min(from + batch(), open_samples(draw.epoch))))
      add(run);
  }
  const Draw draw = at(next);
  for (const OpenSamples& run : runs_of(draw.epoch, draw.batch * batch(), open_samples(draw.epoch))) add(run);
  for (const Part& part : parts_)  // epochs that earlier attempts trained in part
    for (const OpenSamples& range : part.open)
      if (part.epoch > draw.epoch) add(range);
  return open;
}

}  // namespace echelon::inline data
