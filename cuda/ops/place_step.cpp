// SPDX-License-Identifier: Apache-2.0
// Puts the rows of one step at their place in sequences.
#include <memory>

#include "cuda/kernel_op.hpp"
#include "cuda/kernels/rnn_step.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {

std::unique_ptr<Op> make_place_step(const Context& context, const OpSpec& spec) {
  const auto d = std::get<PlaceStepDims>(spec.dims);
  return with_float(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    return std::make_unique<KernelOp>(context, spec, [d](const OpArgs& a, cudaStream_t stream) {
      place_step(d, tensor<const T>(a, 0), d.lengths ? tensor<const std::int32_t>(a, 1) : nullptr,
                 tensor<T>(a, d.lengths ? 2 : 1), stream);
    });
  });
}

}  // namespace echelon::cuda
