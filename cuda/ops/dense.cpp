// SPDX-License-Identifier: Apache-2.0
// Dense layers through cuBLAS.
//
// A column-major library sees y = x w^T (N, K) as y^T = w x^T, and so on (cuda/blas.hpp); the comment of each call
// below is in row-major terms. Factors of halves are summed in f32, and the weights' gradient is left in f32.
#include <memory>

#include "cuda/blas.hpp"
#include "cuda/check.hpp"
#include "cuda/kernel_op.hpp"
#include "cuda/kernels/channel_sums.hpp"
#include "cuda/kernels/elementwise.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {
namespace {

template <class T>
class Dense final : public Op {
 public:
  Dense(const Context& context, const OpSpec& spec)
      : context_(context),
        kind_(spec.kind),
        d_(std::get<DenseDims>(spec.dims)),
        text_(spec.text()),
        output_{d_.N, d_.K, 1} {}

  std::size_t scratch_bytes() const override {
    if (kind_ == OpKind::dense_backward_weights) return d_.bias ? channel_scratch_bytes(output_, 1) : 0;
    return kHalf<T> ? static_cast<std::size_t>(d_.K * d_.F) * sizeof(T) : 0;
  }
  std::string implementation() const override { return "cublas gemm"; }
  void run(const OpArgs& args) override {
    context_.use();
    if (kind_ == OpKind::dense_forward) forward(args);
    if (kind_ == OpKind::dense_backward_data) backward_data(args);
    if (kind_ == OpKind::dense_backward_weights) backward_weights(args);
    check_launch(text_);
  }

 private:
  using P = Wide<T>;  // type of parameters

  // Returns the weights as a factor: halves are rounded into scratch.
  const T* weights(const OpArgs& a) const {
    if constexpr (kHalf<T>) {
      T* rounded = static_cast<T*>(a.scratch);
      reorder<P, T>(tensor<const P>(a, 1), Layout::plain, rounded, Layout::plain, Shape{d_.K, d_.F}, false,
                    context_.stream());
      return rounded;
    } else {
      return tensor<const T>(a, 1);
    }
  }
  // y (N, K) = x (N, F) w (K, F)^T + b
  void forward(const OpArgs& a) const {
    T* y = tensor<T>(a, d_.bias ? 3 : 2);
    gemm(context_, context_.tf32(), CUBLAS_OP_T, CUBLAS_OP_N, {d_.K, d_.N, d_.F}, weights(a), d_.F,
         tensor<const T>(a, 0), d_.F, false, y, d_.K);
    if (d_.bias) add_bias(y, tensor<const P>(a, 2), output_, context_.stream());
  }
  // dx (N, F) = dy (N, K) w (K, F)
  void backward_data(const OpArgs& a) const {
    gemm(context_, context_.tf32(), CUBLAS_OP_N, CUBLAS_OP_N, {d_.F, d_.N, d_.K}, weights(a), d_.F,
         tensor<const T>(a, 0), d_.K, adds(a, 2), tensor<T>(a, 2), d_.F);
  }
  // dw (K, F) = dy (N, K)^T x (N, F); db (K) = sum of dy over N
  void backward_weights(const OpArgs& a) const {
    gemm(context_, context_.tf32(), CUBLAS_OP_N, CUBLAS_OP_T, {d_.F, d_.K, d_.N}, tensor<const T>(a, 0), d_.F,
         tensor<const T>(a, 1), d_.K, adds(a, 2), tensor<P>(a, 2), d_.F);
    if (d_.bias)
      bias_gradient(tensor<const T>(a, 1), tensor<P>(a, 3), output_, adds(a, 3), a.scratch, context_.stream());
  }

  const Context& context_;
  OpKind kind_;
  DenseDims d_;
  std::string text_;
  ChannelExtents output_;
};

}  // namespace

std::unique_ptr<Op> make_dense(const Context& context, const OpSpec& spec) {
  return with_type(spec.dtype,
                   [&]<class T>(T) -> std::unique_ptr<Op> { return std::make_unique<Dense<T>>(context, spec); });
}

}  // namespace echelon::cuda
