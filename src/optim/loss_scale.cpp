// SPDX-License-Identifier: Apache-2.0
#include "optim/loss_scale.hpp"

#include <algorithm>

namespace echelon::inline optim {

LossScaling loss_scaling_of(const DeviceConfig& config) {
  if (config.loss_scale > 0) return {.dynamic = false, .start = config.loss_scale};
  if (config.dtype == DType::f16) return {.dynamic = true, .start = 65536};
  return {};
}

bool LossScale::update(bool finite) {
  if (!finite) {
    ++skipped_;
    good_steps_ = 0;
    if (!scaling_.dynamic || value_ <= kLeast) return false;
    value_ /= 2;
    return true;
  }
  if (scaling_.dynamic && ++good_steps_ >= kPatience) {
    value_ = std::min(2 * value_, kMost);
    good_steps_ = 0;
  }
  return true;
}

void LossScale::visit_state(StateVisitor& visitor) {
  if (!active()) return;
  visitor.scalar("loss_scale", value_, Absent::kept_in_other_run);
  visitor.scalar("loss_scale_good_steps", good_steps_, Absent::kept_in_other_run);
  visitor.scalar("skipped_steps", skipped_, Absent::kept_in_other_run);
}

}  // namespace echelon::inline optim
