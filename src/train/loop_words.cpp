// SPDX-License-Identifier: Apache-2.0
// The control words of a step that a rank sends to the others, and the errors that follow from theirs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/process.hpp"
#include "job/agree.hpp"
#include "job/job_end.hpp"
#include "job/signals.hpp"
#include "train/hooks/divergence.hpp"
#include "train/loop_account.hpp"

namespace echelon::inline train {
namespace {

constexpr double kLookEvery_s = 0.5;  // interval between readings of memory and of clocks, which take 10 us each

}  // namespace

ControlWords LoopAccount::words_of(const LossSums& losses, std::int64_t step) {
  const SignalWishes wishes = take_signal_wishes();
  const bool asked =
      std::any_of(p_.hooks.begin(), p_.hooks.end(), [](const Hook* hook) { return hook->asks_to_requeue(); });
  told_compute_s_ = last_.compute_s;
  return {.loss = losses.loss,
          .weight = losses.weight,
          .step = static_cast<double>(step),
          .last = last_,
          .requeue = wishes.requeue || job_end_is_near(p_.config.run.stop_before_end_s) || asked,
          .interrupt = wishes.interrupt,
          .checkpoint = wishes.checkpoint || (p_.group.rank() == 0 && clock_wants_checkpoint())};
}

void LoopAccount::remember(const StepOutcome& outcome) {
  const StepTimes& t = step_clock_.times();
  if (const double now_s = clock_.now_s(); now_s - looked_at_s_ >= kLookEvery_s) {
    looked_at_s_ = now_s;
    resident_mb_ = resident_mb();
    throttled_ = p_.stepper.throttled();
  }
  last_ = {.compute_s = p_.stepper.trains() ? t.data_wait_s + t.forward_s + t.backward_s : -1,
           .exposed_s = outcome.exchange_wait_s,
           .exchange_s = outcome.exchange_busy_s,
           .wire_bytes = static_cast<double>(outcome.wire.bytes_sent),
           .rss_mb = resident_mb_,
           .throttled = static_cast<double>(throttled_)};
}

void LoopAccount::refuse_loss(const ControlSum& sum) {
  const auto rank = static_cast<int>(sum.not_finite_rank);
  // If ranks do not meet in every step, one that is at its first may have the updates of others.
  const bool every_step = p_.control.progress().meets == Progress::Meets::every_step;
  const std::int64_t step = std::max<std::int64_t>(state_.at.step + 1, every_step ? 1 : 2);
  throw CommonError(kExitNumeric, std::isfinite(sum.not_finite_loss)
                                      ? diverged_text(sum.not_finite_loss, rank, p_.config)
                                      : not_finite_text(sum.not_finite_loss, step, rank, p_.config));
}

void LoopAccount::overflow(const StepOutcome& outcome) {
  const std::string text = fmt::format(
      "the gradients are not finite at step {} though the loss was scaled by no more than {}; {}", state_.at.step + 1,
      outcome.loss_scale,
      p_.config.device.loss_scale > 0 ? "device.loss_scale = 0 finds a scale by itself"
                                      : "a lower optimizer.learning_rate or device.dtype = \"bf16\" may help");
  // If replicas meet at every step, all have seen the same gradients.
  if (p_.control.progress().meets == Progress::Meets::every_step) throw CommonError(kExitNumeric, text);
  throw NumericError(text);
}

bool LoopAccount::clock_wants_checkpoint() {
  if (p_.config.checkpoint.every_minutes <= 0) return false;
  if (clock_.now_s() - last_clock_checkpoint_s_ < p_.config.checkpoint.every_minutes * 60) return false;
  last_clock_checkpoint_s_ = clock_.now_s();
  return true;
}

}  // namespace echelon::inline train
