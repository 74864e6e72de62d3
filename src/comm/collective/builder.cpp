// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/builder.hpp"

#include <algorithm>
#include <functional>

#include "base/check.hpp"

namespace echelon::inline comm {

PlanBuilder::PlanBuilder(std::int64_t segment_elems, int slots)
    : segment_(segment_elems > 0 ? segment_elems : kDefaultSegment), slots_in_turn_(slots) {}

std::vector<ElemRange> PlanBuilder::segments(ElemRange range) const {
  std::vector<ElemRange> all;
  const auto parts = static_cast<int>((range.elems() + segment_ - 1) / segment_);
  for (int i = 0; i < parts; ++i) {
    const ElemRange cut = even_part(range.elems(), parts, i);
    all.push_back({range.begin + cut.begin, range.begin + cut.end});
  }
  return all;
}

void PlanBuilder::exchange(int to, ElemRange out, int from, ElemRange in, Arrival arrival) {
  const std::vector<ElemRange> going = segments(out), coming = segments(in);
  for (std::size_t j = 0; j < std::max(going.size(), coming.size()); ++j) {
    Aside aside;
    if (j < coming.size()) {
      if (arrival == Arrival::adds)
        aside = receive_aside(from, coming[j]);
      else
        receive(from, coming[j]);
    }
    if (j < going.size()) send(to, going[j]);
    if (aside.slot >= 0) add(aside);
  }
}

std::int64_t PlanBuilder::send(int peer, ElemRange range, std::int64_t after) {
  return append({.kind = StepKind::send, .peer = peer, .range = range}, {after});
}

std::int64_t PlanBuilder::receive(int peer, ElemRange range, std::int64_t after) {
  return append({.kind = StepKind::recv, .peer = peer, .range = range}, {after});
}

PlanBuilder::Aside PlanBuilder::receive_aside(int peer, ElemRange range, std::int64_t after) {
  const int slot = static_cast<int>(asides_++ % slots_in_turn_);
  const std::int64_t received = append({.kind = StepKind::recv, .peer = peer, .range = range, .slot = slot}, {after});
  return {slot, range, received};
}

std::int64_t PlanBuilder::add(const Aside& aside) {
  return append({.kind = StepKind::reduce, .range = aside.range, .slot = aside.slot}, {});
}

void PlanBuilder::next_part(const Team& team, std::int64_t phases, std::int64_t uses) {
  first_phase_ = shared_.phases, first_use_ = shared_.uses;
  std::vector<int> ranks;
  for (int index = 0; index < team.size(); ++index) ranks.push_back(team[index]);
  shared_ = {.ranks = std::move(ranks), .phases = first_phase_ + phases, .uses = first_use_ + uses};
}

std::int64_t PlanBuilder::on_shared(Step step) {
  SharedPart& part = step.shared;
  part.use += first_use_;
  for (std::int64_t* phase : {&part.phase, &part.needs, &part.freed})
    if (*phase > 0) *phase += first_phase_;
  return append(step, {});
}

void PlanBuilder::embed(const Plan& plan, const Team& team, std::int64_t first) {
  ECHELON_CHECK(!plan.uses_library(), "plan {} is the library's and cannot be a part of another plan", plan.name());
  std::vector<std::int64_t> index;
  for (std::int64_t i = 0; i < plan.steps(); ++i) {
    Step step = plan.step(i);
    std::vector<std::int64_t> waits;
    for (const std::int64_t earlier : step.after)
      if (earlier >= 0) waits.push_back(index[static_cast<std::size_t>(earlier)]);
    step.after = {-1, -1};
    if (step.after_all > 0) step.after_all = index[static_cast<std::size_t>(step.after_all) - 1] + 1;
    step.range = {step.range.begin + first, step.range.end + first};
    if (step.peer >= 0) step.peer = team[step.peer];
    index.push_back(append(step, std::move(waits)));
  }
}

std::int64_t PlanBuilder::append(Step step, std::vector<std::int64_t> waits) {
  const bool has_slot = step.slot >= 0;
  const bool buffer = step.kind == StepKind::reduce || step.kind == StepKind::copy || !has_slot;
  const bool writes_buffer = buffer && step.kind != StepKind::send && step.kind != StepKind::put && !step.to_slot;
  const bool reads_buffer = buffer && !writes_buffer;
  const bool writes_slot = has_slot && (step.kind == StepKind::recv || step.to_slot);
  const ElemRange slot{step.slot, step.slot + 1};

  if (writes_buffer) buffer_.before_write(step.range, waits);
  if (reads_buffer) buffer_.before_read(step.range, waits);
  if (writes_slot) slots_.before_write(slot, waits);
  if (has_slot && !writes_slot) slots_.before_read(slot, waits);
  name_waits(step, std::move(waits));

  const auto index = static_cast<std::int64_t>(steps_.size());
  if (writes_buffer) buffer_.note_write(step.range, index);
  if (reads_buffer) buffer_.note_read(step.range, index);
  if (writes_slot) slots_.note_write(slot, index);
  if (has_slot && !writes_slot) slots_.note_read(slot, index);
  if (has_slot) {
    slots_used_ = std::max(slots_used_, step.slot + 1);
    slot_elems_ = std::max(slot_elems_, step.range.elems());
  }
  steps_.push_back(step);
  return index;
}

// Whether `step` is known to wait for `earlier` through at most `links` steps.
bool PlanBuilder::comes_after(std::int64_t step, std::int64_t earlier, int links) const {
  if (step <= earlier || links == 0) return step == earlier;
  const Step& at = steps_[static_cast<std::size_t>(step)];
  return std::any_of(at.after.begin(), at.after.end(),
                     [&](std::int64_t before) { return comes_after(before, earlier, links - 1); });
}

// Leaves out those of `waits` that others of them wait for; names the last two of the rest.
void PlanBuilder::name_waits(Step& step, std::vector<std::int64_t> waits) const {
  constexpr int kLinks = 5;
  std::sort(waits.begin(), waits.end(), std::greater<>());
  std::vector<std::int64_t> kept;
  for (const std::int64_t wait : waits)
    if (wait >= 0 &&
        std::none_of(kept.begin(), kept.end(), [&](std::int64_t later) { return comes_after(later, wait, kLinks); }))
      kept.push_back(wait);
  for (std::size_t i = 0; i < std::min<std::size_t>(2, kept.size()); ++i) step.after[i] = kept[i];
  if (kept.size() > 2) step.after_all = std::max(step.after_all, kept[2] + 1);
}

// A rank has passed the phases in which it has no step as soon as its steps before them are done.
void PlanBuilder::join_phases() {
  std::int64_t passed = shared_.phases;
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (!on_shared_memory(step->kind) || step->shared.phase == 0) continue;
    const std::int64_t own = step->shared.phase;
    step->shared.phase = passed >= own ? passed : 0;
    passed = own - 1;
  }
  shared_.passed_at_start = passed;
}

std::shared_ptr<const Plan> PlanBuilder::finish(std::string name) {
  join_phases();
  return std::make_shared<ListedPlan>(std::move(name), std::move(steps_), slots_used_, slot_elems_, std::move(shared_));
}

}  // namespace echelon::inline comm
