// SPDX-License-Identifier: Apache-2.0
// Ends a run that diverges though its loss is still a number: the loss of each of the last kDivergenceSteps steps was
// above train.divergence_factor x max(1, loss of the run's first step). Ordinary runs come nowhere near: a loss at the
// first step is that of a model that has learned nothing. Every rank. Where ranks meet in every step, all see the mean
// over the replicas; elsewhere each replica counts its own steps and losses, and one that diverges ends the run of all
// at the next meeting, which it calls where meetings are called (train/control/control.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "checkpoint/run_state.hpp"
#include "config/schema.hpp"
#include "train/hooks/hook.hpp"

namespace echelon::inline train {

inline constexpr int kDivergenceSteps = 20;

class DivergenceHook final : public Hook {
 public:
  // `state`: takes the first loss, and has it where the run was resumed. `every_step`: ranks meet in every step.
  // `warn`: of monitor.divergence = "warn"; one rank has it.
  DivergenceHook(const Config& config, RunState& state, bool every_step = true,
                 std::function<void(const std::string&)> warn = {})
      : config_(config), state_(state), every_step_(every_step), warn_(std::move(warn)) {}
  // CommonError (exit 5) where the run diverges, unless it is to be told or ignored (monitor.divergence).
  void step_end(const StepRecord& record) override;
  double diverges(const LossSums& own, std::int64_t step) override;

 private:
  // True if the loss of one more step makes too many; `text` then says so.
  bool too_many(double loss, std::int64_t step, std::string& text);

  const Config& config_;
  RunState& state_;
  bool every_step_;
  std::function<void(const std::string&)> warn_;
  int above_ = 0;  // steps in a row
};

// The error text for a rank whose own losses diverge.
std::string diverged_text(double loss, int rank, const Config& config);
// Why a loss is not finite and what may help. `step`: counted from 1, of the whole run.
std::string not_finite_text(double loss, std::int64_t step, int rank, const Config& config);

}  // namespace echelon::inline train
