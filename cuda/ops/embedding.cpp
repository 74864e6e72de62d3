// SPDX-License-Identifier: Apache-2.0
// Embeddings by our own kernels.
#include <memory>

#include "cuda/kernel_op.hpp"
#include "cuda/kernels/recurrent.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {

std::unique_ptr<Op> make_embedding(const Context& context, const OpSpec& spec) {
  const auto d = std::get<EmbeddingDims>(spec.dims);
  return with_type(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    if (spec.kind == OpKind::embedding_forward)
      return std::make_unique<KernelOp>(context, spec, [d](const OpArgs& a, cudaStream_t stream) {
        embedding_rows(tensor<const std::int32_t>(a, 0), tensor<const Wide<T>>(a, 1), tensor<T>(a, 2), d, stream);
      });
    return std::make_unique<KernelOp>(context, spec, [d](const OpArgs& a, cudaStream_t stream) {
      embedding_gradient(tensor<const std::int32_t>(a, 0), tensor<const T>(a, 1), tensor<Wide<T>>(a, 2), d,
                         d.sparse ? tensor<std::uint32_t>(a, 3) : nullptr, adds(a, 2), stream);
    });
  });
}

}  // namespace echelon::cuda
