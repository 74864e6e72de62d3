// SPDX-License-Identifier: Apache-2.0
// Checks of training in halves on a device of any kind, beyond the contract of single ops.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "device/device.hpp"
#include "optim/loss_scale.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/trainer.hpp"

namespace echelon::test {

// A 16-bit type, and the relative error that its rounding may cause in a loss or a gradient.
struct Half {
  DType dtype;
  double tolerance;
};
inline constexpr Half kF16 = {DType::f16, 0.05}, kBf16 = {DType::bf16, 0.2};

using DeviceMaker = std::function<std::unique_ptr<Device>()>;

// The samples are always the same: where rounding moves a maximum or a kink, gradients may differ by anything.
inline constexpr std::int64_t kMixedBatch = 12;
PlainBatch mixed_batch(const Graph& graph, std::int64_t step);
Trainer mixed_trainer(const Graph& graph, const DeviceMaker& open, DType activations);

// Compares one micro-batch in halves with f64: loss and gradients. A second run must give the same bits.
void check_mixed_gradients(const Graph& graph, const DeviceMaker& open, Half half);
// Does the same for models of images, and checks that logits are f32.
void check_mixed_images(const DeviceMaker& open, Half half);
// Does the same for models of sequences, and checks that every op which the device has in halves computes in halves.
void check_mixed_sequences(const DeviceMaker& open, Half half);
// Checks that recurrent states which a batch leaves for the next one are kept and used.
void check_mixed_states(const DeviceMaker& open, Half half);
// Takes ten steps as the strategy takes them, and returns the loss of each.
std::vector<double> mixed_losses(const Graph& graph, const DeviceMaker& open, DType activations,
                                 const LossScaling& scaling);
// Checks that the losses of ten steps are near those in f32, and that those fall.
void check_mixed_training(const DeviceMaker& open, Half half, const LossScaling& scaling);

}  // namespace echelon::test
