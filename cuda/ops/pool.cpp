// SPDX-License-Identifier: Apache-2.0
// Max and average pooling; a max pool leaves the positions of its maxima for its backward twin.
#include "cuda/kernels/pool.hpp"

#include <limits>
#include <memory>

#include "base/check.hpp"
#include "cuda/kernel_op.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {

std::unique_ptr<Op> make_pool(const Context& context, const OpSpec& spec) {
  const auto d = std::get<PoolDims>(spec.dims);
  ECHELON_CHECK_LE(d.in.cells(), std::int64_t{std::numeric_limits<std::int32_t>::max()},
                   "the positions of maxima are 32-bit integers");
  const std::size_t saved =
      d.mode == PoolMode::max ? static_cast<std::size_t>(d.N * d.C * d.out().cells()) * sizeof(std::int32_t) : 0;
  const Layout layout = spec.layouts[0];
  return with_type(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    KernelOp::Body body;
    if (spec.kind == OpKind::pool_forward)
      body = [d, layout](const OpArgs& a, cudaStream_t stream) {
        pool_forward(d, layout, tensor<const T>(a, 0), tensor<T>(a, 1), static_cast<std::int32_t*>(a.saved), stream);
      };
    else
      body = [d, layout](const OpArgs& a, cudaStream_t stream) {
        ECHELON_CHECK(a.saved || d.mode != PoolMode::max, "the positions that the forward op saves are missing");
        pool_backward(d, layout, tensor<const T>(a, 0), static_cast<const std::int32_t*>(a.saved), tensor<T>(a, 1),
                      adds(a, 1), stream);
      };
    return std::make_unique<KernelOp>(context, spec, std::move(body), 0, saved);
  });
}

}  // namespace echelon::cuda
