// SPDX-License-Identifier: Apache-2.0
#include "train/loop_account.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "base/spans.hpp"
#include "optim/schedule.hpp"
#include "train/positions.hpp"

namespace echelon::inline train {

Ending run_loop(const LoopParts& parts) {
  return parts.control.progress().meets == Progress::Meets::when_called ? run_asynchronous(parts) : run_together(parts);
}

void LoopAccount::begin() {
  p_.phase.at_step(state_.step);
  p_.phase.enter("start");
  for (Hook* hook : p_.hooks) hook->run_begin(state_.step);
  p_.group.barrier();
  epoch_start_s_ = last_clock_checkpoint_s_ = step_clock_.read();
  step_clock_.restart();
}

Ending LoopAccount::end(Ending ending) {
  p_.phase.enter("end");
  p_.stepper.end_run();
  for (Hook* hook : p_.hooks) hook->run_end(ending == Ending::finished);
  return ending;
}

StepInfo LoopAccount::rate() const {
  const Position& at = state_.at;
  StepInfo info;
  info.step = at.step, info.epoch = at.epoch, info.step_in_epoch = at.step_in_epoch;
  info.learning_rate = scaling_factor(p_.config.optimiser, p_.plan.batch.global) *
                       learning_rate_at(p_.config.optimiser, at.step, p_.plan.steps_per_epoch, p_.plan.total_steps);
  return info;
}

StepInfo LoopAccount::info_of_next() const {
  StepInfo info = rate();
  const SamplePlan& shards = p_.stepper.shards(p_.plan.shards);
  info.weight = shards.weight(info.epoch, info.step_in_epoch);
  for (const int replica : p_.plan.sources(p_.replica))
    info.local_weight += shards.weight(info.epoch, info.step_in_epoch, replica);
  return info;
}

std::int64_t LoopAccount::samples_of_this_rank(const StepInfo& info, std::int64_t end) const {
  std::int64_t samples = 0, epoch = info.epoch, step_in_epoch = info.step_in_epoch;
  for (std::int64_t step = info.step; step < end; ++step) {
    for (const int replica : p_.plan.sources(p_.replica))
      samples += p_.plan.shards.counting(epoch, step_in_epoch, replica);
    if (++step_in_epoch == p_.plan.shards.steps_in(epoch)) step_in_epoch = 0, ++epoch;
  }
  return samples;
}

void LoopAccount::train(Step& step, bool at_once) {
  p_.phase.at_step(step.info.step + 1);
  const StepResult result = p_.stepper.run(step.info, [&](const LossSums& losses) {
    step.own = losses;
    if (at_once) p_.control.add(words_of(losses, step.info.step + 1), true);
  });
  step.outcome = result.outcome;
  StepTimes& times = step_clock_.times();
  if (result.of_device) {
    times = *result.of_device;
    return;
  }
  times.exchange_s += step.outcome.exchange_wait_s;
  times.optimiser_s += step.outcome.optimiser_s;
}

void LoopAccount::tell(const Step& step, bool meets) {
  const std::int64_t next_step = step.outcome.next_step;
  ControlWords words = words_of(step.outcome.contributed ? step.own : LossSums{}, next_step);
  words.drift = step.outcome.drift;
  for (Hook* hook : p_.hooks)
    if (const double loss = hook->diverges(step.own, next_step); loss != 0) words.diverged_loss = loss;
  p_.control.add(words, meets);
}

ControlSum LoopAccount::meet(bool comes) {
  ControlSum sum;
  {
    const WatchedSpan span(SpanKind::meeting, clock_);
    if (comes) p_.stepper.come_to_meeting();
    sum = p_.control.meet();
  }
  if (sum.not_finite_rank >= 0) refuse_loss(sum);
  return sum;
}

void LoopAccount::record(Step& step) {
  const StepInfo& info = step.info;
  const StepOutcome& outcome = step.outcome;
  StepRecord& record = step.record;
  const auto samples = static_cast<double>(samples_of_this_rank(info, info.step + 1));
  const double tokens = p_.plan.per_token() ? info.local_weight : 0;
  record.epoch = info.epoch;
  record.learning_rate = info.learning_rate;
  record.own = step.own;
  record.loss = step.own.weight > 0 ? step.own.loss / step.own.weight : std::nan("");
  record.samples = samples, record.tokens = tokens;
  if (outcome.contributed && !outcome.skipped) record.entered_samples = samples, record.entered_tokens = tokens;
  if (!outcome.contributed) {
    record.steps_left_out = outcome.next_step - info.step - 1;
    record.dropped_samples = samples_of_this_rank(info, outcome.next_step);
  }
  record.batch = info.step_in_epoch;
  record.outcome = outcome;
  remember(outcome);
  if (outcome.give_up) overflow(outcome);
}

bool LoopAccount::advance(std::int64_t next_step) {
  Position& at = state_.at;
  const std::int64_t steps = next_step - at.step, epoch = at.epoch;
  ECHELON_CHECK_GE(steps, 1, "step {} leads back to step {}", at.step, next_step);
  at = position_after(p_.plan.shards, at, steps);
  return at.epoch > epoch;
}

Ending LoopAccount::close(StepRecord& record, const ControlSum& sum, const Closing& closing) {
  bool last = closing.last;
  record.own_step = state_.at.step;
  record.step = record.meets ? state_.step : record.own_step;
  if (record.meets) {
    record.loss = sum.weight > 0 ? sum.loss / sum.weight : std::nan("");
    record.arrival_skew_s = sum.arrival_skew_s();
    if (told_compute_s_ >= 0) record.skew_wait_s = std::max(0.0, sum.slowest_s - told_compute_s_);
    record.drift = sum.largest_drift;
    if (p_.control.times().size() > 1)
      for (const RankStep& rank : p_.control.times())
        if (rank.compute_s >= 0) record.ranks.push_back(rank);
    state_.epoch_loss += sum.loss;
    state_.epoch_weight += sum.weight;
    record.checkpoint_requested = sum.checkpoint();
    record.stopping = !last && (sum.requeue() || sum.interrupt());
  }

  p_.phase.enter("hooks");
  const double hooks_start_s = step_clock_.read();
  record.times = step_clock_.times();
  const double train_loss = state_.epoch_weight > 0 ? state_.epoch_loss / state_.epoch_weight : std::nan("");
  if (closing.ends_epoch) state_.epoch_loss = state_.epoch_weight = 0;
  record.ends_epoch = closing.ends_epoch || last;
  {
    const StepClock::Held hooks(step_clock_, &StepTimes::hooks_s);
    each_hook([&](Hook& hook) { hook.step_end(record); });
    if (record.meets && hooks_end_run()) last = record.ends_epoch = true;
    over_ = last;
    if (record.ends_epoch)
      end_epoch({.epoch = closing.epochs,
                 .step = record.step,
                 .train_loss = train_loss,
                 .last = last,
                 .within = !closing.ends_epoch && state_.step_in_epoch > 0});
  }
  if (over_) record.stopping = false;
  record.times = step_clock_.times();
  trace(record.trained, hooks_start_s);
  step_clock_.restart();
  for (Hook* hook : p_.hooks) hook->step_recorded(record);
  return !record.stopping ? Ending::finished : sum.interrupt() ? Ending::interrupted : Ending::requeue;
}

// Records the spans of a step, or of a meeting that this rank has waited for. The window of run.trace opens and closes
// here.
void LoopAccount::trace(bool trained, double hooks_start_s) {
  SpanRecorder* const spans = span_place.recorder;
  if (!spans) return;
  const double end_s = step_clock_.end_s();
  spans->add({.begin_s = hooks_start_s, .end_s = end_s, .kind = SpanKind::hooks});
  if (trained) spans->add({.begin_s = step_clock_.start_s(), .end_s = end_s, .kind = SpanKind::step});
  spans->after_step(state_.at.step, end_s);
}

template <class Call>
void LoopAccount::each_hook(const Call& call) {
  for (Hook* hook : p_.hooks) {
    const StepClock::Held part(step_clock_, hook->time_part());
    call(*hook);
  }
}

void LoopAccount::end_epoch(EpochRecord record) {
  record.per_token = p_.plan.per_token();
  record.seconds = clock_.now_s() - epoch_start_s_;
  each_hook([&](Hook& hook) { hook.epoch_end(record); });
  over_ |= hooks_end_run();
  epoch_start_s_ = clock_.now_s();
}

bool LoopAccount::hooks_end_run() const {
  return std::any_of(p_.hooks.begin(), p_.hooks.end(), [](const Hook* hook) { return hook->ends_run(); });
}

}  // namespace echelon::inline train
