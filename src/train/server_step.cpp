// SPDX-License-Identifier: Apache-2.0
#include "train/server_step.hpp"

namespace echelon::inline train {

StepResult ServerStep::run(const StepInfo& info, const std::function<void(const LossSums&)>& on_losses) {
  StepResult result;
  phase_.enter("serving");
  on_losses(result.losses);
  strategy_.begin_step(info);
  result.outcome = strategy_.end_step();
  return result;
}

}  // namespace echelon::inline train
