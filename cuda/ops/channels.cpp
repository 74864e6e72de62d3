// SPDX-License-Identifier: Apache-2.0
// Ops that move or normalise along channels and rows, and dropout: concat, slice, local response and layer norm.
#include "cuda/kernels/channels.hpp"

#include <memory>

#include "cuda/kernel_op.hpp"
#include "cuda/kernels/channel_sums.hpp"
#include "cuda/kernels/dropout.hpp"
#include "cuda/kernels/layer_norm.hpp"
#include "cuda/kernels/lrn.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {

std::unique_ptr<Op> make_dropout(const Context& context, const OpSpec& spec) {
  return with_type(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    const auto d = std::get<DropoutDims>(spec.dims);
    const std::int64_t N = d.shape[0], row = d.shape.row_elems();
    const bool last = spec.layouts[0] == Layout::channels_last;
    const std::int64_t channels = last || d.plane > 0 ? d.shape[1] : 1;
    const Place place{channels, row / channels, spec.layouts[0]};
    const std::int64_t plane = d.plane > 0 ? d.plane : place.elems;
    return std::make_unique<KernelOp>(context, spec, [d, N, place, plane](const OpArgs& a, cudaStream_t stream) {
      dropout(a.key, d.rate, tensor<const T>(a, 0), tensor<const std::int32_t>(a, 1), tensor<T>(a, 2), N, place,
              d.first, plane, adds(a, 2), stream);
    });
  });
}

std::unique_ptr<Op> make_concat(const Context& context, const OpSpec& spec) {
  return with_type(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    const auto d = std::get<ConcatDims>(spec.dims);
    const ChannelExtents e = channel_extents(d.N, d.C(), d.H * d.W, spec.layouts[0]);
    return std::make_unique<KernelOp>(context, spec, [d, e](const OpArgs& a, cudaStream_t stream) {
      const int inputs = d.inputs();
      std::int64_t before = 0;
      for (int i = 0; i < inputs; ++i) {
        const std::int64_t count = d.channels[static_cast<std::size_t>(i)];
        move_channels(e.N, e.elems, count, tensor<const T>(a, i), {count, 0}, tensor<T>(a, inputs), {e.C, before},
                      false, stream);
        before += count;
      }
    });
  });
}

std::unique_ptr<Op> make_slice(const Context& context, const OpSpec& spec) {
  const bool indices = std::get<SliceDims>(spec.dims).indices;  // four bytes that are copied unchanged
  return with_type(indices ? DType::f32 : spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    const auto d = std::get<SliceDims>(spec.dims);
    const ChannelExtents e = channel_extents(d.N, d.C, d.H * d.W, spec.layouts[0]);
    return std::make_unique<KernelOp>(context, spec, [d, e](const OpArgs& a, cudaStream_t stream) {
      move_channels(e.N, e.elems, d.count, tensor<const T>(a, 0), {d.C, d.first}, tensor<T>(a, 1), {d.count, 0},
                    adds(a, 1), stream);
    });
  });
}

std::unique_ptr<Op> make_lrn(const Context& context, const OpSpec& spec) {
  return with_type(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    const auto d = std::get<LrnDims>(spec.dims);
    const ChannelExtents e = channel_extents(d.N, d.C, d.H * d.W, spec.layouts[0]);
    if (spec.kind == OpKind::lrn_forward)
      return std::make_unique<KernelOp>(context, spec, [d, e](const OpArgs& a, cudaStream_t stream) {
        lrn_forward(d, e, tensor<const T>(a, 0), tensor<T>(a, 1), stream);
      });
    const auto backward = [d, e](const OpArgs& a, cudaStream_t stream) {
      lrn_backward(d, e, tensor<const T>(a, 0), tensor<const T>(a, 1), tensor<T>(a, 2), adds(a, 2),
                   static_cast<Wide<T>*>(a.scratch), stream);
    };
    return std::make_unique<KernelOp>(context, spec, backward,
                                      static_cast<std::size_t>(d.N * d.C * d.H * d.W) * sizeof(Wide<T>));
  });
}

std::unique_ptr<Op> make_layer_norm(const Context& context, const OpSpec& spec) {
  return with_type(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    const auto d = std::get<LayerNormDims>(spec.dims);
    const RowExtents e{d.rows(), d.F};
    // x gamma beta -> y stats
    if (spec.kind == OpKind::layer_norm_forward)
      return std::make_unique<KernelOp>(context, spec, [e, d](const OpArgs& a, cudaStream_t stream) {
        using P = Wide<T>;
        layer_norm_forward(e, tensor<const T>(a, 0), tensor<const P>(a, 1), tensor<const P>(a, 2), d.epsilon,
                           tensor<T>(a, 3), tensor<double>(a, 4), stream);
      });
    // x dy stats gamma -> dx dgamma dbeta
    const auto run = [e](const OpArgs& a, cudaStream_t stream) {
      const T *x = tensor<const T>(a, 0), *dy = tensor<const T>(a, 1);
      const auto* stats = tensor<const double>(a, 2);
      using P = Wide<T>;
      layer_norm_backward(e, x, dy, stats, tensor<const P>(a, 3), tensor<T>(a, 4), adds(a, 4), stream);
      layer_norm_parameter_gradients(e, x, dy, stats, tensor<P>(a, 5), adds(a, 5), tensor<P>(a, 6), adds(a, 6),
                                     a.scratch, stream);
    };
    return std::make_unique<KernelOp>(context, spec, run, channel_scratch_bytes({e.rows, e.F, 1}, 2));
  });
}

}  // namespace echelon::cuda
