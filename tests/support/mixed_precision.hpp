// Training in halves on a device of any kind: what the ops' contract does not see.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "device/device.hpp"
#include "optim/loss_scale.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/trainer.hpp"

namespace echelon::test {

// A half, and how far its rounding may take a loss or a gradient.
struct Half {
  DType dtype;
  double tolerance;
};
inline constexpr Half kF16 = {DType::f16, 0.05}, kBf16 = {DType::bf16, 0.2};

using OpenDevice = std::function<std::unique_ptr<Device>()>;

// Always the same samples: where rounding moves a maximum or a kink, gradients may differ by anything.
inline constexpr std::int64_t kMixedBatch = 12;
PlainBatch mixed_batch(const Graph& graph, std::int64_t step);
Trainer mixed_trainer(const Graph& graph, const OpenDevice& open, DType activations);

// One micro-batch in halves against f64: loss, gradients, the same bits again.
void check_mixed_gradients(const Graph& graph, const OpenDevice& open, Half half);
// Of images: the same, and logits are f32.
void check_mixed_images(const OpenDevice& open, Half half);
// Of sequences: the same, and every op that the device has in halves computes in halves.
void check_mixed_sequences(const OpenDevice& open, Half half);
// Recurrent states that a batch leaves for the next are kept, and count there.
void check_mixed_states(const OpenDevice& open, Half half);
// Ten steps as the strategy takes them; the loss of each.
std::vector<double> mixed_losses(const Graph& graph, const OpenDevice& open, DType activations,
                                 const LossScaling& scaling);
// Losses of ten steps are near those in f32, which fall.
void check_mixed_training(const OpenDevice& open, Half half, const LossScaling& scaling);

}  // namespace echelon::test
