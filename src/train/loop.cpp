#include "train/loop.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "optim/schedule.hpp"
#include "train/agree.hpp"
#include "train/hooks/divergence.hpp"
#include "train/signals.hpp"

namespace echelon {

Loop::Loop(const Config& config, const RunPlan& plan, int replica, Stepper& runner, Group& group, Control& control,
           RunState& state, PhaseBoard& phase, std::vector<Hook*> hooks)
    : config_(config),
      plan_(plan),
      replica_(replica),
      runner_(runner),
      group_(group),
      control_(control),
      state_(state),
      phase_(phase),
      hooks_(std::move(hooks)) {}

Ending Loop::run() {
  phase_.at_step(state_.step);
  phase_.enter("start");
  for (Hook* hook : hooks_) hook->run_begin(state_.step);
  first_step_ = state_.step;
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
  StepResult result = runner_.run(info, [&](const LossSums& losses) { control_.begin(words_of(losses)); });
  const ControlSum sum = agree(result);
  if (sum.not_finite_rank >= 0) refuse_loss(sum);
  if (result.outcome.give_up) overflow(result.outcome);
  const bool epoch_over = advance(sum, result.outcome);

  StepRecord record;
  record.step = state_.step;
  record.epoch = info.epoch;
  record.learning_rate = info.learning_rate;
  record.loss = sum.weight > 0 ? sum.loss / sum.weight : std::nan("");
  record.samples = static_cast<double>(plan_.shards.counting(info.epoch, step_in_epoch));  // a paced device counts none
  record.tokens = plan_.per_token() ? info.weight : 0;
  record.times = result.times;
  record.outcome = result.outcome;
  record.arrival_skew_s = sum.arrival_skew_s();
  if (info.step > first_step_ && control_.times().size() > 1) {
    for (const RankStep& rank : control_.times())
      if (rank.compute_s >= 0) record.ranks.push_back(rank);
  }
  record.checkpoint_wanted = sum.checkpoint();
  const bool last = state_.step >= plan_.total_steps;
  record.stopping = !last && (sum.requeue() || sum.interrupt());

  phase_.enter("hooks");
  const double hooks_start_s = now_s();
  const double train_loss = state_.epoch_weight > 0 ? state_.epoch_loss / state_.epoch_weight : std::nan("");
  if (epoch_over) state_.epoch_loss = state_.epoch_weight = 0;
  record.ends_epoch = epoch_over || last;
  record.times.total_s = hooks_start_s - mark_s_;
  for (Hook* hook : hooks_) hook->step_end(record);
  if (record.ends_epoch) end_epoch({.train_loss = train_loss, .last = last});
  const double end_s = now_s();
  record.times.hooks_s = end_s - hooks_start_s;
  record.times.total_s = end_s - mark_s_;
  mark_s_ = end_s;
  for (Hook* hook : hooks_) hook->step_recorded(record);
  if (!record.stopping) return Ending::finished;
  return sum.interrupt() ? Ending::interrupted : Ending::requeue;
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
  info.step_in_epoch = state_.step_in_epoch;
  info.learning_rate = scaling_factor(config_.optimiser, plan_.batch.global) *
                       learning_rate_at(config_.optimiser, state_.step, plan_.steps_per_epoch, plan_.total_steps);
  info.weight = plan_.shards.weight(state_.epoch, state_.step_in_epoch);
  for (const int replica : plan_.sources(replica_))
    info.local_weight += plan_.shards.weight(state_.epoch, state_.step_in_epoch, replica);
  return info;
}

ControlWords Loop::words_of(const LossSums& losses) {
  const SignalWishes wishes = take_signal_wishes();
  return {.loss = losses.loss,
          .weight = losses.weight,
          .last = last_,
          .requeue = wishes.requeue || job_end_is_near(config_.run.stop_before_end_s),
          .interrupt = wishes.interrupt,
          .checkpoint = wishes.checkpoint || (group_.rank() == 0 && clock_wants_checkpoint())};
}

ControlSum Loop::agree(StepResult& result) {
  ControlSum sum;
  {
    const ScopedTimer timer(result.times.exchange_s);
    sum = control_.wait();
  }
  const StepTimes& t = result.times;
  last_ = {.compute_s = runner_.trains() ? t.data_wait_s + t.forward_s + t.backward_s : -1,
           .exposed_s = result.outcome.exchange_wait_s,
           .exchange_s = result.outcome.exchange_busy_s,
           .wire_bytes = static_cast<double>(result.outcome.wire.bytes_sent)};
  return sum;
}

void Loop::refuse_loss(const ControlSum& sum) {
  throw CommonError(kExitNumeric, not_finite_text(sum.not_finite_loss, state_.step + 1, sum.not_finite_rank, config_));
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

// To the step that the replica joins next; true where an epoch ends on the way.
bool Loop::advance(const ControlSum& sum, const StepOutcome& outcome) {
  const std::int64_t steps = outcome.next_step - state_.step, epoch = state_.epoch;
  ECHELON_CHECK_GE(steps, 1, "step {} leads back to step {}", state_.step, outcome.next_step);
  state_.step += steps;
  state_.epoch_loss += sum.loss;
  state_.epoch_weight += sum.weight;
  for (state_.step_in_epoch += steps; state_.step_in_epoch >= plan_.steps_per_epoch; ++state_.epoch)
    state_.step_in_epoch -= plan_.steps_per_epoch;
  return state_.epoch > epoch;
}

bool Loop::clock_wants_checkpoint() {
  if (config_.checkpoint.every_minutes <= 0) return false;
  if (now_s() - last_clock_checkpoint_s_ < config_.checkpoint.every_minutes * 60) return false;
  last_clock_checkpoint_s_ = now_s();
  return true;
}

}  // namespace echelon
