// SPDX-License-Identifier: Apache-2.0
// Activations, sums and layouts.
#include "cuda/kernels/elementwise.hpp"

#include <memory>
#include <type_traits>

#include "base/check.hpp"

#include "cuda/kernel_op.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {
namespace {

template <class T>
KernelOp::Body activation_body(const OpSpec& spec, const ActivationDims& d) {
  const std::int64_t n = d.shape.elems();
  if (spec.kind == OpKind::activation_forward)
    return [=](const OpArgs& a, cudaStream_t stream) {
      activation_forward(d, tensor<const T>(a, 0), tensor<T>(a, 1), n, stream);
    };
  return [=](const OpArgs& a, cudaStream_t stream) {
    activation_backward(d, tensor<const T>(a, 0), tensor<const T>(a, 1), tensor<T>(a, 2), n, adds(a, 2), stream);
  };
}

template <class T>
KernelOp::Body add_body(const OpSpec& spec, const ElementwiseDims& d) {
  if (spec.kind == OpKind::masked_add)
    return [n = d.shape.elems()](const OpArgs& a, cudaStream_t stream) {
      add_masked(tensor<const T>(a, 0), tensor<const T>(a, 1), tensor<const T>(a, 2), tensor<T>(a, 3), n, stream);
    };
  return [n = d.shape.elems(), relu = d.relu](const OpArgs& a, cudaStream_t stream) {
    add_tensors(tensor<const T>(a, 0), tensor<const T>(a, 1), tensor<T>(a, 2), n, relu, stream);
  };
}

template <class X, class Y>
KernelOp::Body reorder_body(const OpSpec& spec, const ReorderDims& d) {
  return [shape = d.shape, from = spec.layouts[0], to = spec.layouts[1]](const OpArgs& a, cudaStream_t stream) {
    reorder(tensor<const X>(a, 0), from, tensor<Y>(a, 1), to, shape, false, stream);
  };
}

}  // namespace

std::unique_ptr<Op> make_reorder(const Context& context, const OpSpec& spec) {
  const auto& d = std::get<ReorderDims>(spec.dims);
  const DType from = d.from.value_or(spec.dtype);
  ECHELON_CHECK(from == spec.dtype || from == wide_of(spec.dtype) || wide_of(from) == spec.dtype, "{}", spec.text());
  return with_type(from, [&]<class X>(X) {
    return with_type(spec.dtype, [&]<class Y>(Y) -> std::unique_ptr<Op> {
      if constexpr (std::is_same_v<X, Y> || std::is_same_v<X, Wide<Y>> || std::is_same_v<Wide<X>, Y>)
        return std::make_unique<KernelOp>(context, spec, reorder_body<X, Y>(spec, d));
      return nullptr;
    });
  });
}

std::unique_ptr<Op> make_activation(const Context& context, const OpSpec& spec) {
  return with_type(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    return std::make_unique<KernelOp>(context, spec, activation_body<T>(spec, std::get<ActivationDims>(spec.dims)));
  });
}

std::unique_ptr<Op> make_add(const Context& context, const OpSpec& spec) {
  return with_type(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    return std::make_unique<KernelOp>(context, spec, add_body<T>(spec, std::get<ElementwiseDims>(spec.dims)));
  });
}

}  // namespace echelon::cuda
