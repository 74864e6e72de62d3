#include "train/loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/clock.hpp"
#include "optim/schedule.hpp"
#include "train/agree.hpp"
#include "train/signals.hpp"

namespace echelon {

Loop::Loop(const Config& config, const RunPlan& plan, int replica, Stepper& runner, Group& group, RunState& state,
           PhaseBoard& phase, std::vector<Hook*> hooks)
    : config_(config),
      plan_(plan),
      replica_(replica),
      runner_(runner),
      group_(group),
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
  PendingGather words;
  StepResult result = runner_.run(info, [&](const LossSums& losses) { words = tell(losses); });
  const Control control = agree(words, result);
  require_finite(control.losses);
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
  if (group_.size() > 1 && info.step > first_step_) {
    record.ranks = control.ranks;
    record.ranks.resize(control.ranks.size() - static_cast<std::size_t>(config_.exchange.server_ranks));
  }
  record.checkpoint_wanted = control.checkpoint;
  const bool last = state_.step >= plan_.total_steps;
  record.stopping = !last && (control.requeue || control.interrupt);

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
  return control.interrupt ? Ending::interrupted : Ending::requeue;
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
  for (const int replica : plan_.sources(replica_))
    info.local_weight += plan_.shards.weight(state_.epoch, state_.step_in_epoch, replica);
  return info;
}

PendingGather Loop::tell(const LossSums& losses) {
  const SignalWishes wishes = take_signal_wishes();
  const auto word = [](bool yes) { return yes ? 1.0 : 0.0; };
  const Words words = {.loss = losses.loss,
                       .weight = losses.weight,
                       .requeue = word(wishes.requeue || job_end_is_near(config_.run.stop_before_end_s)),
                       .interrupt = word(wishes.interrupt),
                       .checkpoint = word(wishes.checkpoint || (group_.rank() == 0 && clock_wants_checkpoint())),
                       .last = last_};
  return group_.start_gather(std::bit_cast<std::array<double, kWords>>(words));
}

Loop::Control Loop::agree(const PendingGather& words, StepResult& result) {
  Control control;
  const std::vector<double>* all = nullptr;
  {
    const ScopedTimer timer(result.times.exchange_s);
    all = &words.wait();
  }
  for (std::size_t i = 0; i < all->size(); i += kWords) {
    std::array<double, kWords> block{};
    std::copy_n(all->begin() + static_cast<std::ptrdiff_t>(i), kWords, block.begin());
    const auto of_rank = std::bit_cast<Words>(block);
    control.weight += of_rank.weight;
    control.requeue |= of_rank.requeue > 0;
    control.interrupt |= of_rank.interrupt > 0;
    control.checkpoint |= of_rank.checkpoint > 0;
    control.losses.push_back(of_rank.loss);
    control.ranks.push_back(of_rank.last);
  }
  control.loss = sum_in_tree(control.losses);
  const StepTimes& t = result.times;
  last_ = {.compute_s = t.data_wait_s + t.forward_s + t.backward_s,
           .exposed_s = result.outcome.exchange_wait_s,
           .exchange_s = result.outcome.exchange_busy_s,
           .wire_bytes = static_cast<double>(result.outcome.wire.bytes_sent)};
  return control;
}

void Loop::require_finite(const std::vector<double>& losses) {
  for (std::size_t rank = 0; rank < losses.size(); ++rank)
    if (!std::isfinite(losses[rank]))
      throw CommonError(kExitNumeric,
                        fmt::format("the loss is {} at step {} on rank {}; a lower optimizer.learning_rate than {} or "
                                    "optimizer.warmup_epochs may help",
                                    std::isnan(losses[rank]) ? "not a number" : "infinite", state_.step + 1, rank,
                                    config_.optimiser.learning_rate));
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
