// SPDX-License-Identifier: Apache-2.0
// The factor on the loss in backward that keeps gradients of 16-bit activations from underflow, and its rule
// (Micikevicius et al. 2018, section 3.2): a step whose summed gradients hold inf or NaN is skipped and the scale
// halved; after `kPatience` good steps in a row it is doubled.
//
// The scale is a power of two, so that scaling and unscaling do not round. Where gradients are summed, an inf or NaN of
// any replica is in the sums of all, so that all replicas make the same decision without a message; replicas that take
// separate steps have separate scales (exchange/local_scaling.hpp).
#pragma once

#include <cstdint>

#include "base/state.hpp"
#include "config/schema.hpp"

namespace echelon::inline optim {

struct LossScaling {
  bool dynamic = false;
  double start = 1;  // 1 and not dynamic: off, gradients are not tested
};

// Reads [device]: a fixed scale if loss_scale is above 0, else a dynamic one that starts at 65536 for f16, else off.
LossScaling loss_scaling_of(const DeviceConfig& config);

class LossScale {
 public:
  static constexpr std::int64_t kPatience = 2000;
  static constexpr double kLeast = 1, kMost = 16777216;  // bounds of a dynamic scale, 2^0 and 2^24

  explicit LossScale(const LossScaling& scaling) : scaling_(scaling), value_(scaling.start) {}

  bool active() const { return scaling_.dynamic || scaling_.start != 1; }
  double value() const { return value_; }  // scale of the next step
  std::int64_t skipped() const { return skipped_; }

  // Called after each step; `finite`: its summed gradients were finite. Halves or doubles the scale of the next step.
  // Returns false if a smaller scale cannot help: it is fixed, or already kLeast.
  bool update(bool finite);

  // Visits scalars "loss_scale", "loss_scale_good_steps", "skipped_steps"; none if scaling is off.
  void visit_state(StateVisitor& visitor);

 private:
  LossScaling scaling_;
  double value_;
  std::int64_t good_steps_ = 0;  // in a row since the scale changed
  std::int64_t skipped_ = 0;     // in the whole run
};

}  // namespace echelon::inline optim
