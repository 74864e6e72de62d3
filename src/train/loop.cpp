#include "train/loop.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/clock.hpp"
#include "optim/schedule.hpp"
#include "train/agree.hpp"
#include "train/signals.hpp"

namespace echelon {

Loop::Loop(const Config& config, const RunPlan& plan, StepRunner& runner, Group& group, RunState& state,
           PhaseBoard& phase, std::vector<Hook*> hooks)
    : config_(config),
      plan_(plan),
      runner_(runner),
      group_(group),
      state_(state),
      phase_(phase),
      hooks_(std::move(hooks)) {}

Ending Loop::run() {
  phase_.at_step(state_.step);
  phase_.enter("start");
  for (Hook* hook : hooks_) hook->run_begin(state_.step);
  mark_s_ = epoch_start_s_ = last_clock_checkpoint_s_ = now_s();
  Ending ending = Ending::finished;
  if (state_.step >= plan_.total_steps) end_epoch({.last = true});  // killed after its last checkpoint
  while (state_.step < plan_.total_steps && ending == Ending::finished) ending = one_step();
  phase_.enter("end");
  for (Hook* hook : hooks_) hook->run_end(ending == Ending::finished);
  return ending;
}

Ending Loop::one_step() {
  const StepInfo info = info_of_next();
  const std::int64_t step_in_epoch = state_.step_in_epoch;
  phase_.at_step(info.step + 1);
  StepResult result = runner_.run(info);
  const Control control = agree(result);
  if (control.not_finite > 0) not_finite(result);
  if (result.outcome.give_up) overflow(result.outcome);
  advance(control);

  StepRecord record;
  record.step = state_.step;
  record.epoch = info.epoch;
  record.learning_rate = info.learning_rate;
  record.loss = control.weight > 0 ? control.loss / control.weight : std::nan("");
  record.samples = static_cast<double>(plan_.shards.counting(info.epoch, step_in_epoch));  // a paced device counts none
  record.tokens = plan_.per_token() ? info.weight : 0;
  record.times = result.times;
  record.outcome = result.outcome;
  record.wire_bytes = result.wire_bytes;
  record.wire_messages = result.wire_messages;
  record.library_bytes = result.library_bytes;
  record.checkpoint_wanted = control.checkpoint > 0;
  const bool last = state_.step >= plan_.total_steps;
  record.stopping = !last && control.requeue + control.interrupt > 0;

  phase_.enter("hooks");
  const double hooks_start_s = now_s();
  const bool epoch_over = state_.step_in_epoch == 0;
  const double train_loss = state_.epoch_weight > 0 ? state_.epoch_loss / state_.epoch_weight : std::nan("");
  if (epoch_over) state_.epoch_loss = state_.epoch_weight = 0;
  for (Hook* hook : hooks_) hook->step_end(record);
  if (epoch_over || last) end_epoch({.train_loss = train_loss, .last = last});
  const double end_s = now_s();
  record.times.hooks_s = end_s - hooks_start_s;
  record.times.total_s = end_s - mark_s_;
  mark_s_ = end_s;
  for (Hook* hook : hooks_) hook->step_recorded(record);
  if (!record.stopping) return Ending::finished;
  return control.interrupt > 0 ? Ending::interrupted : Ending::requeue;
}

void Loop::end_epoch(EpochRecord record) {
  record.epoch = state_.epoch;
  record.step = state_.step;
  record.per_token = plan_.per_token();
  record.seconds = now_s() - epoch_start_s_;
  for (Hook* hook : hooks_) hook->epoch_end(record);
  epoch_start_s_ = now_s();
}

StepInfo Loop::info_of_next() const {
  StepInfo info;
  info.step = state_.step;
  info.epoch = state_.epoch;
  info.learning_rate = scaling_factor(config_.optimiser, plan_.batch.global) *
                       learning_rate_at(config_.optimiser, state_.step, plan_.steps_per_epoch, plan_.total_steps);
  info.weight = plan_.shards.weight(state_.epoch, state_.step_in_epoch);
  for (const int replica : plan_.sources(group_.rank()))
    info.local_weight += plan_.shards.weight(state_.epoch, state_.step_in_epoch, replica);
  return info;
}

Loop::Control Loop::agree(StepResult& result) {
  const double start_s = now_s();
  const SignalWishes wishes = take_signal_wishes();
  const bool requeue = wishes.requeue || job_end_is_near(config_.run.stop_before_end_s);
  const bool clock = group_.rank() == 0 && clock_wants_checkpoint();
  const bool finite = std::isfinite(result.losses.loss);
  std::array<double, 6> sums = {finite ? result.losses.loss : 0.0,
                                result.losses.weight,
                                finite ? 0.0 : 1.0,
                                requeue ? 1.0 : 0.0,
                                wishes.interrupt ? 1.0 : 0.0,
                                wishes.checkpoint || clock ? 1.0 : 0.0};
  group_.sum(sums);
  result.times.exchange_s += now_s() - start_s;
  return {sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]};
}

void Loop::not_finite(const StepResult& result) {
  const std::vector<double> losses = group_.gather(result.losses.loss);
  for (std::size_t rank = 0; rank < losses.size(); ++rank)
    if (!std::isfinite(losses[rank]))
      throw CommonError(kExitNumeric,
                        fmt::format("the loss is {} at step {} on rank {}; a lower optimizer.learning_rate than {} or "
                                    "optimizer.warmup_epochs may help",
                                    std::isnan(losses[rank]) ? "not a number" : "infinite", state_.step + 1, rank,
                                    config_.optimiser.learning_rate));
  throw CommonError(kExitNumeric, fmt::format("the loss is not finite at step {}", state_.step + 1));
}

// Every replica has seen the same gradients.
void Loop::overflow(const StepOutcome& outcome) {
  throw CommonError(
      kExitNumeric,
      fmt::format("the gradients are not finite at step {} though the loss was scaled by no more than {}; {}",
                  state_.step + 1, outcome.loss_scale,
                  config_.device.loss_scale > 0
                      ? "device.loss_scale = 0 finds a scale by itself"
                      : "a lower optimizer.learning_rate or device.dtype = \"bf16\" may help"));
}

void Loop::advance(const Control& control) {
  ++state_.step;
  state_.epoch_loss += control.loss;
  state_.epoch_weight += control.weight;
  if (++state_.step_in_epoch >= plan_.steps_per_epoch) {
    state_.step_in_epoch = 0;
    ++state_.epoch;
  }
}

bool Loop::clock_wants_checkpoint() {
  if (config_.checkpoint.every_minutes <= 0) return false;
  if (now_s() - last_clock_checkpoint_s_ < config_.checkpoint.every_minutes * 60) return false;
  last_clock_checkpoint_s_ = now_s();
  return true;
}

}  // namespace echelon
