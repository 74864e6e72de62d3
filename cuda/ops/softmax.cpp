// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy, forward and backward.
#include "cuda/kernels/softmax.hpp"

#include <memory>

#include "cuda/kernel_op.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {
namespace {

// A label for every place of (N, K, P).
std::unique_ptr<Op> make_places(const Context& context, const OpSpec& spec, const SoftmaxDims& d) {
  return with_float(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    if (spec.kind == OpKind::loss_softmax_backward)
      return std::make_unique<KernelOp>(context, spec, [d](const OpArgs& a, cudaStream_t stream) {
        softmax_places_backward(d.N, d.K, d.P, d.smoothing, tensor<const T>(a, 0), tensor<const std::int32_t>(a, 1),
                                tensor<const T>(a, 2), a.scale, tensor<T>(a, 3), adds(a, 3), stream);
      });
    const auto forward = [d](const OpArgs& a, cudaStream_t stream) {
      softmax_places_forward(d.N, d.K, d.P, d.smoothing, tensor<const T>(a, 0), tensor<const std::int32_t>(a, 1),
                             tensor<const T>(a, 2), tensor<T>(a, 3), static_cast<double*>(a.scratch),
                             tensor<double>(a, 4), adds(a, 4), stream);
    };
    return std::make_unique<KernelOp>(context, spec, forward, static_cast<std::size_t>(d.N * d.P) * 3 * sizeof(double));
  });
}

}  // namespace

std::unique_ptr<Op> make_softmax(const Context& context, const OpSpec& spec) {
  const auto d = std::get<SoftmaxDims>(spec.dims);
  if (d.P > 1) return make_places(context, spec, d);
  return with_float(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    // probs labels weights -> dlogits
    if (spec.kind == OpKind::loss_softmax_backward)
      return std::make_unique<KernelOp>(context, spec, [d](const OpArgs& a, cudaStream_t stream) {
        softmax_backward(d.N, d.K, d.smoothing, tensor<const T>(a, 0), tensor<const std::int32_t>(a, 1),
                         tensor<const T>(a, 2), a.scale, tensor<T>(a, 3), adds(a, 3), stream);
      });
    // logits labels weights -> probs sums
    const auto forward = [d](const OpArgs& a, cudaStream_t stream) {
      softmax_forward(d.N, d.K, d.smoothing, tensor<const T>(a, 0), tensor<const std::int32_t>(a, 1),
                      tensor<const T>(a, 2), tensor<T>(a, 3), static_cast<double*>(a.scratch), tensor<double>(a, 4),
                      adds(a, 4), stream);
    };
    return std::make_unique<KernelOp>(context, spec, forward, static_cast<std::size_t>(d.N) * 3 * sizeof(double));
  });
}

}  // namespace echelon::cuda
