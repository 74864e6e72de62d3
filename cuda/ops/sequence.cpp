// SPDX-License-Identifier: Apache-2.0
// Losses of numbers, pooling of sequences, and addition of one tensor to every sample.
#include "cuda/kernels/sequence.hpp"

#include <memory>

#include "cuda/kernel_op.hpp"
#include "cuda/kernels/channel_sums.hpp"
#include "cuda/kernels/elementwise.hpp"
#include "cuda/kernels/softmax.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {
namespace {

// x targets weights -> sums, or dx
template <class T, class Target>
std::unique_ptr<Op> value_loss(const Context& context, const OpSpec& spec) {
  const auto d = std::get<ValueLossDims>(spec.dims);
  if (spec.kind == OpKind::loss_values_backward)
    return std::make_unique<KernelOp>(context, spec, [d](const OpArgs& a, cudaStream_t stream) {
      value_loss_backward(d, tensor<const T>(a, 0), tensor<const Target>(a, 1), tensor<const T>(a, 2), a.scale,
                          tensor<T>(a, 3), adds(a, 3), stream);
    });
  const auto forward = [d](const OpArgs& a, cudaStream_t stream) {
    auto* rows = static_cast<double*>(a.scratch);
    value_loss_rows(d, tensor<const T>(a, 0), tensor<const Target>(a, 1), tensor<const T>(a, 2), rows, stream);
    sum_loss_rows(d.elems, rows, tensor<double>(a, 3), adds(a, 3), stream);
  };
  return std::make_unique<KernelOp>(context, spec, forward, static_cast<std::size_t>(d.elems) * 3 * sizeof(double));
}

// x w -> y, or dy -> dw, with a number w for each channel
std::unique_ptr<Op> channel_broadcast(const Context& context, const OpSpec& spec) {
  const auto d = std::get<BroadcastDims>(spec.dims);
  const ChannelExtents extents = channel_extents(d.shape[0], d.shape[1], d.cells(), spec.layouts[0]);
  const bool forward = spec.kind == OpKind::broadcast_add;
  return with_type(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    const auto body = [=, bytes = static_cast<std::size_t>(d.shape.elems()) * sizeof(T)](const OpArgs& a,
                                                                                         cudaStream_t stream) {
      if (!forward)
        return bias_gradient(tensor<const T>(a, 0), tensor<Wide<T>>(a, 1), extents, adds(a, 1), a.scratch, stream);
      if (a.tensors[0] != a.tensors[2])
        ECHELON_CUDA(cudaMemcpyAsync(a.tensors[2], a.tensors[0], bytes, cudaMemcpyDeviceToDevice, stream));
      add_bias(tensor<T>(a, 2), tensor<const Wide<T>>(a, 1), extents, stream);
    };
    return std::make_unique<KernelOp>(context, spec, body, channel_scratch_bytes(extents, 1));
  });
}

}  // namespace

std::unique_ptr<Op> make_value_loss(const Context& context, const OpSpec& spec) {
  const bool indices = std::get<ValueLossDims>(spec.dims).index_targets;
  return with_float(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    return indices ? value_loss<T, std::int32_t>(context, spec) : value_loss<T, T>(context, spec);
  });
}

std::unique_ptr<Op> make_sequence_pool(const Context& context, const OpSpec& spec) {
  const auto d = std::get<SequencePoolDims>(spec.dims);
  const bool forward = spec.kind == OpKind::sequence_pool_forward;
  return with_type(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    return std::make_unique<KernelOp>(context, spec, [d, forward](const OpArgs& a, cudaStream_t stream) {
      const auto* lengths = d.lengths ? tensor<const std::int32_t>(a, 1) : nullptr;
      const int out = d.lengths ? 2 : 1;
      if (forward)
        sequence_pool_forward(d, tensor<const T>(a, 0), lengths, tensor<T>(a, out), stream);
      else
        sequence_pool_backward(d, tensor<const T>(a, 0), lengths, tensor<T>(a, out), adds(a, out), stream);
    });
  });
}

std::unique_ptr<Op> make_broadcast(const Context& context, const OpSpec& spec) {
  const auto d = std::get<BroadcastDims>(spec.dims);
  const Shape shape = d.shape;
  const std::int64_t N = shape[0], elems = shape.row_elems();
  const bool forward = spec.kind == OpKind::broadcast_add;
  if (d.channels) return channel_broadcast(context, spec);
  return with_type(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    return std::make_unique<KernelOp>(context, spec, [=](const OpArgs& a, cudaStream_t stream) {
      if (forward)
        broadcast_add(N, elems, tensor<const T>(a, 0), tensor<const Wide<T>>(a, 1), tensor<T>(a, 2), stream);
      else
        sum_samples(N, elems, tensor<const T>(a, 0), tensor<Wide<T>>(a, 1), adds(a, 1), stream);
    });
  });
}

}  // namespace echelon::cuda
