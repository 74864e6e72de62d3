// SPDX-License-Identifier: Apache-2.0
// Upsampling.
#include "cuda/kernels/upsample.hpp"

#include <memory>

#include "cuda/kernel_op.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {

std::unique_ptr<Op> make_upsample(const Context& context, const OpSpec& spec) {
  const auto d = std::get<UpsampleDims>(spec.dims);
  const bool forward = spec.kind == OpKind::upsample_forward;
  const Layout layout = spec.layouts[0];
  return with_type(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    return std::make_unique<KernelOp>(context, spec, [=](const OpArgs& a, cudaStream_t stream) {
      if (forward)
        upsample_forward(d, layout, tensor<const T>(a, 0), tensor<T>(a, 1), stream);
      else
        upsample_backward(d, layout, tensor<const T>(a, 0), tensor<T>(a, 1), adds(a, 1), stream);
    });
  });
}

}  // namespace echelon::cuda
