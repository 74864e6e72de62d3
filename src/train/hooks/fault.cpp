// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/fault.hpp"

namespace echelon::inline train {

void WeightFaultHook::step_end(const StepRecord& record) {
  faults_.flip_weights(record.step, arenas_, [this] { strategy_.drain(); });  // the step's weights, not those before it
}

}  // namespace echelon::inline train
