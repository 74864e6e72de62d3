// SPDX-License-Identifier: Apache-2.0
// Focal and Dice loss, forward and backward.
#include "cuda/kernels/class_loss.hpp"

#include <memory>

#include "cuda/kernel_op.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {

std::unique_ptr<Op> make_class_loss(const Context& context, const OpSpec& spec) {
  const auto d = std::get<ClassLossDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    const bool dice = d.loss == ClassLoss::dice;
    // probs labels weights [overlaps] -> dlogits
    if (spec.kind == OpKind::loss_class_backward)
      return std::make_unique<KernelOp>(context, spec, [d, dice](const OpArgs& a, cudaStream_t stream) {
        const int gradient = dice ? 4 : 3;
        class_loss_backward(d, tensor<const T>(a, 0), tensor<const std::int32_t>(a, 1), tensor<const T>(a, 2),
                            dice ? tensor<const double>(a, 3) : nullptr, a.scale, tensor<T>(a, gradient),
                            adds(a, gradient), stream);
      });
    // own overlaps -> sums
    if (spec.kind == OpKind::loss_class_join) {
      const auto join = [d](const OpArgs& a, cudaStream_t stream) {
        class_loss_join(d, tensor<const double>(a, 0), tensor<const double>(a, 1), static_cast<double*>(a.scratch),
                        tensor<double>(a, 2), adds(a, 2), stream);
      };
      return std::make_unique<KernelOp>(context, spec, join, static_cast<std::size_t>(3 * d.N) * sizeof(double));
    }
    // logits labels weights -> probs sums [overlaps]
    const auto forward = [d, dice](const OpArgs& a, cudaStream_t stream) {
      class_loss_forward(d, tensor<const T>(a, 0), tensor<const std::int32_t>(a, 1), tensor<const T>(a, 2),
                         tensor<T>(a, 3), static_cast<double*>(a.scratch), tensor<double>(a, 4), adds(a, 4),
                         dice ? tensor<double>(a, 5) : nullptr, stream);
    };
    return std::make_unique<KernelOp>(context, spec, forward, static_cast<std::size_t>(3 * d.N * d.P) * sizeof(double));
  });
}

}  // namespace echelon::cuda
