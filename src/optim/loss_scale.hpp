// The factor on the loss in backward that keeps gradients of halves above their smallest numbers, and its rule
// (Micikevicius et al. 2018, section 3.2): a step whose summed gradients hold inf or NaN is skipped and the scale
// halved; after `kPatience` good steps in a row it is doubled.
//
// It is a power of two, so that scaling and unscaling round nothing. Replicas look at the same summed gradients, where
// inf and NaN of any of them stay, so all decide alike without a message.
#pragma once

#include <cstdint>

#include "base/state.hpp"
#include "config/schema.hpp"

namespace echelon::inline optim {

struct LossScaling {
  bool dynamic = false;
  double start = 1;  // 1 and not dynamic: off, and no gradient is looked at
};

// What [device] asks for: dynamic from 65536 for f16, else `loss_scale`.
LossScaling loss_scaling_of(const DeviceConfig& config);

class LossScale {
 public:
  static constexpr std::int64_t kPatience = 2000;
  static constexpr double kLeast = 1, kMost = 16777216;

  explicit LossScale(const LossScaling& scaling) : scaling_(scaling), value_(scaling.start) {}

  bool active() const { return scaling_.dynamic || scaling_.start != 1; }
  double value() const { return value_; }  // of the next step
  std::int64_t skipped() const { return skipped_; }

  // After a step. False where its gradients cannot become finite by a smaller scale: it was fixed, or the least.
  bool update(bool finite);

  // "loss_scale", "loss_scale_good_steps", "skipped_steps" where it is active.
  void visit_state(StateVisitor& visitor);

 private:
  LossScaling scaling_;
  double value_;
  std::int64_t good_steps_ = 0;  // in a row since the scale changed
  std::int64_t skipped_ = 0;     // in the whole run
};

}  // namespace echelon::inline optim
