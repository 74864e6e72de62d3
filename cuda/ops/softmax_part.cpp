// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy over parts of the classes.
#include <memory>

#include "cuda/kernel_op.hpp"
#include "cuda/kernels/softmax_part.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {

std::unique_ptr<Op> make_softmax_part(const Context& context, const OpSpec& spec) {
  const auto d = std::get<SoftmaxPartDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    // logits labels -> partials
    if (spec.kind == OpKind::loss_softmax_part)
      return std::make_unique<KernelOp>(context, spec, [d](const OpArgs& a, cudaStream_t stream) {
        softmax_part(d, tensor<const T>(a, 0), tensor<const std::int32_t>(a, 1), tensor<T>(a, 2), stream);
      });
    // partials weights -> norms sums
    if (spec.kind == OpKind::loss_softmax_join) {
      const auto join = [d](const OpArgs& a, cudaStream_t stream) {
        softmax_join(d, tensor<const T>(a, 0), tensor<const T>(a, 1), tensor<T>(a, 2), static_cast<double*>(a.scratch),
                     tensor<double>(a, 3), adds(a, 3), stream);
      };
      return std::make_unique<KernelOp>(context, spec, join, static_cast<std::size_t>(d.N) * 3 * sizeof(double));
    }
    // logits norms labels weights -> dlogits
    return std::make_unique<KernelOp>(context, spec, [d](const OpArgs& a, cudaStream_t stream) {
      softmax_part_backward(d, tensor<const T>(a, 0), tensor<const T>(a, 1), tensor<const std::int32_t>(a, 2),
                            tensor<const T>(a, 3), a.scale, tensor<T>(a, 4), adds(a, 4), stream);
    });
  });
}

}  // namespace echelon::cuda
