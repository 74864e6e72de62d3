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
    // probs labels weights -> dlogits
    if (spec.kind == OpKind::loss_class_backward) {
      const auto backward = [d](const OpArgs& a, cudaStream_t stream) {
        class_loss_backward(d, tensor<const T>(a, 0), tensor<const std::int32_t>(a, 1), tensor<const T>(a, 2),
                            static_cast<double*>(a.scratch), a.scale, tensor<T>(a, 3), adds(a, 3), stream);
      };
      return std::make_unique<KernelOp>(context, spec, backward, class_loss_backward_scratch(d) * sizeof(double));
    }
    // logits labels weights -> probs sums
    const auto forward = [d](const OpArgs& a, cudaStream_t stream) {
      class_loss_forward(d, tensor<const T>(a, 0), tensor<const std::int32_t>(a, 1), tensor<const T>(a, 2),
                         tensor<T>(a, 3), static_cast<double*>(a.scratch), tensor<double>(a, 4), adds(a, 4), stream);
    };
    return std::make_unique<KernelOp>(context, spec, forward, class_loss_forward_scratch(d) * sizeof(double));
  });
}

}  // namespace echelon::cuda
