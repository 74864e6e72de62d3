// Ends a run that diverges though its loss is still a number: the loss of each of the last kDivergenceSteps steps was
// above train.divergence_factor x max(1, loss of the run's first step). Ordinary runs come nowhere near: a loss at the
// first step is that of a model that has learned nothing. Every rank; where replicas do not meet at every step,
// meetings count instead of steps: there all see the same losses.
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
  // `state`: takes the first loss, and has it where the run was resumed. `warn`: of monitor.divergence = "warn"; one
  // rank has it.
  DivergenceHook(const Config& config, RunState& state, std::function<void(const std::string&)> warn = {})
      : config_(config), state_(state), warn_(std::move(warn)) {}
  // CommonError (exit 5) where the run diverges, unless it is to be told or ignored (monitor.divergence).
  void step_end(const StepRecord& record) override;

 private:
  const Config& config_;
  RunState& state_;
  std::function<void(const std::string&)> warn_;
  int above_ = 0;  // steps in a row
};

// Why a loss is not finite and what may help. `step`: counted from 1, of the whole run.
std::string not_finite_text(double loss, std::int64_t step, int rank, const Config& config);

}  // namespace echelon::inline train
