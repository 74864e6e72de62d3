// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/balance.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/log.hpp"
#include "config/batch_plan.hpp"
#include "train/speed_shares.hpp"

namespace echelon::inline train {
namespace {

constexpr std::int64_t kFirstWindow = 8, kLongestWindow = 128;

}  // namespace

BalanceHook::BalanceHook(const RunPlan& plan, Stepper& stepper, Group& group, const RunState& state)
    : plan_(plan), stepper_(stepper), group_(group), state_(state), batches_(plan.batch.per_replica) {
  measure_anew(kFirstWindow);
}

// The first step after a change builds and warms up.
void BalanceHook::measure_anew(std::int64_t steps) {
  window_ = steps;
  steps_ = -1;
  seconds_ = 0;
}

void BalanceHook::step_end(const StepRecord& record) {
  if (steps_++ >= 0) seconds_ += record.times.data_wait_s + record.times.forward_s + record.times.backward_s;
  if (steps_ < window_ || record.stopping || state_.step >= plan_.total_steps) return;
  std::vector<double> seconds = group_.gather(seconds_ / static_cast<double>(window_));
  seconds.resize(batches_.size());  // workers are the first ranks
  if (*std::min_element(seconds.begin(), seconds.end()) <= 0) return measure_anew(window_);
  const std::int64_t even = (plan_.batch.global + std::ssize(batches_) - 1) / std::ssize(batches_);
  std::vector<std::int64_t> batches =
      shares_by_speed(batches_, seconds, plan_.batch.accumulation,
                      std::max(kMostShare * even, *std::max_element(batches_.begin(), batches_.end())));
  if (batches == batches_) return measure_anew(std::min(2 * window_, kLongestWindow));
  if (group_.rank() == 0)
    log_info("step {}: replicas compute {:.1f} to {:.1f} ms; the next steps are shared {} instead of {}", state_.step,
             1e3 * *std::min_element(seconds.begin(), seconds.end()),
             1e3 * *std::max_element(seconds.begin(), seconds.end()), fmt::join(batches, " "),
             fmt::join(batches_, " "));
  batches_ = std::move(batches);
  stepper_.share_by(batches_, state_.at);
  measure_anew(kFirstWindow);
}

}  // namespace echelon::inline train
