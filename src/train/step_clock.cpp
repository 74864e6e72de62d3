// SPDX-License-Identifier: Apache-2.0
#include "train/step_clock.hpp"

#include <optional>

namespace echelon::inline train {
namespace {

// Returns none if the span stays in the part around it.
std::optional<StepClock::Part> entered_part(SpanKind kind) {
  if (kind == SpanKind::meeting) return &StepTimes::exchange_s;
  if (kind == SpanKind::exchange_wait || kind == SpanKind::optimiser) return nullptr;  // the strategy counts these
  const StepClock::Part part = part_of(kind);
  return part != nullptr ? std::optional(part) : std::nullopt;
}

}  // namespace

double StepTimes::*part_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::data: return &StepTimes::data_wait_s;
    case SpanKind::forward: return &StepTimes::forward_s;
    case SpanKind::backward: return &StepTimes::backward_s;
    case SpanKind::split_wait: return &StepTimes::split_s;
    case SpanKind::exchange_wait: return &StepTimes::exchange_s;
    case SpanKind::optimiser: return &StepTimes::optimiser_s;
    default: return nullptr;
  }
}

SpanPlace StepClock::watch(SpanPlace place) {
  inner_ = place.watcher;
  place.watcher = this;
  return place;
}

double StepClock::read() {
  const double now_s = clock_.now_s();
  if (!open_.empty() && open_.back() != nullptr) times_.*open_.back() += now_s - mark_s_;
  times_.total_s = now_s - start_s_;
  return mark_s_ = now_s;
}

void StepClock::restart() {
  start_s_ = mark_s_;
  times_ = {};
}

void StepClock::enter(Part part) {
  read();
  open_.push_back(part);
}

void StepClock::leave() {
  read();
  open_.pop_back();
}

void StepClock::begins(SpanKind kind) {
  if (const auto part = entered_part(kind); part && held_ == 0) enter(*part);
  if (inner_ != nullptr) inner_->begins(kind);
}

// The watcher inside may sleep in the span.
void StepClock::ends(SpanKind kind, double begin_s) {
  if (inner_ != nullptr) inner_->ends(kind, begin_s);
  if (entered_part(kind) && held_ == 0) leave();
}

}  // namespace echelon::inline train
