// Activations, sums and layouts.
#include "cuda/kernels/elementwise.hpp"

#include <memory>

#include "cuda/kernel_op.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {
namespace {

template <class T>
KernelOp::Body activation_body(const OpSpec& spec, const ActivationDims& d) {
  const Activation function = d.function;
  const std::int64_t n = d.shape.elems();
  if (spec.kind == OpKind::activation_forward)
    return [=](const OpArgs& a, cudaStream_t stream) {
      activation_forward(function, tensor<const T>(a, 0), tensor<T>(a, 1), n, stream);
    };
  return [=](const OpArgs& a, cudaStream_t stream) {
    activation_backward(function, tensor<const T>(a, 0), tensor<const T>(a, 1), tensor<T>(a, 2), n, adds(a, 2), stream);
  };
}

template <class T>
KernelOp::Body add_body(const ElementwiseDims& d) {
  return [n = d.shape.elems()](const OpArgs& a, cudaStream_t stream) {
    add_tensors(tensor<const T>(a, 0), tensor<const T>(a, 1), tensor<T>(a, 2), n, stream);
  };
}

template <class T>
KernelOp::Body reorder_body(const OpSpec& spec, const ReorderDims& d) {
  return [shape = d.shape, from = spec.layouts[0], to = spec.layouts[1]](const OpArgs& a, cudaStream_t stream) {
    reorder(tensor<const T>(a, 0), from, tensor<T>(a, 1), to, shape, stream);
  };
}

}  // namespace

std::unique_ptr<Op> make_elementwise(const Context& context, const OpSpec& spec) {
  return with_float(spec.dtype, [&]<class T>(T) -> std::unique_ptr<Op> {
    if (const auto* activation = std::get_if<ActivationDims>(&spec.dims))
      return std::make_unique<KernelOp>(context, spec, activation_body<T>(spec, *activation));
    if (const auto* d = std::get_if<ReorderDims>(&spec.dims))
      return std::make_unique<KernelOp>(context, spec, reorder_body<T>(spec, *d));
    return std::make_unique<KernelOp>(context, spec, add_body<T>(std::get<ElementwiseDims>(spec.dims)));
  });
}

}  // namespace echelon::cuda
