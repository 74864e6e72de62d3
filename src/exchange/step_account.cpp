// SPDX-License-Identifier: Apache-2.0
#include "exchange/step_account.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/spans.hpp"

namespace echelon::inline exchange {

bool ReadyCount::add(ArenaRange done, std::int64_t step) {
  const std::int64_t part = std::min(done.end, range_.end) - std::max(done.begin, range_.begin);
  if (part <= 0) return false;
  elems_ += part;
  ECHELON_CHECK_LE(elems_, range_.elems(), "a gradient was announced twice in step {}", step);
  return complete();
}

void StepAccount::begin_step(const StepInfo& info) {
  info_ = info;
  updates_begun_ = false;
  begin_updates();
}

void StepAccount::completed() {
  --in_flight_;
  begin_updates();
}

void StepAccount::begin_updates() {
  if (updates_begun_ || in_flight_ > 0) return;
  updates_begun_ = true;
  optimiser_.begin_step(info_.step, info_.learning_rate);
}

void StepAccount::note_sent(const WireCounters& sent) {
  outcome_.wire += sent;
  wire_ += sent;
}

void StepAccount::note_times(const Ticket& ticket, std::int64_t bucket) {
  if (SpanRecorder* spans = span_place.recorder)
    spans->add_exchange(ticket.started_s(), ticket.finished_s(), static_cast<std::int64_t>(ticket.wire().bytes_sent),
                        static_cast<int>(bucket));
  first_start_s_ = first_start_s_ == 0 ? ticket.started_s() : std::min(first_start_s_, ticket.started_s());
  last_finish_s_ = std::max(last_finish_s_, ticket.finished_s());
}

StepOutcome StepAccount::take() {
  StepOutcome outcome = std::exchange(outcome_, {});
  outcome.exchange_busy_s = last_finish_s_ - first_start_s_;
  first_start_s_ = last_finish_s_ = 0;
  outcome.next_step = info_.step + 1;
  return outcome;
}

void apply_whole(Optimiser& optimiser, const Arenas& arenas, StepOutcome& outcome) {
  const SpanTimer timer(outcome.optimiser_s, SpanKind::optimiser);
  const ArenaRange all{0, arenas.elems()};
  outcome.loss_scale = optimiser.loss_scale();
  const Optimiser::Verdict verdict = optimiser.accept();
  outcome.skipped = verdict != Optimiser::Verdict::apply;
  outcome.give_up = verdict == Optimiser::Verdict::give_up;
  if (outcome.skipped) return;
  if (optimiser.clips()) outcome.gradient_norm = optimiser.clip(optimiser.measure(all));
  optimiser.apply(all);
}

void apply_all(Optimiser& optimiser, const Arenas& arenas, StepOutcome& outcome) {
  if (optimiser.waits()) return apply_whole(optimiser, arenas, outcome);
  const SpanTimer timer(outcome.optimiser_s, SpanKind::optimiser);
  optimiser.apply({0, arenas.elems()});
}

}  // namespace echelon::inline exchange
