// SPDX-License-Identifier: Apache-2.0
// Activations on flat memory, padding included: the relus, scale and derivatives by our own loops; the other functions
// and all of gelu by the library.
#include <cmath>

#include "base/check.hpp"
#include "device/onednn/planes.hpp"
#include "device/onednn/primitive.hpp"

namespace echelon::inline device::onednn {
namespace {

// dx from dy and the output y: relu dy where y > 0, tanh dy (1 - y^2), sigmoid dy y (1 - y), leaky_relu dy or a dy, elu
// dy or dy (y + a), scale a dy.
template <Activation kFunction>
float pull(float y, float dy, float a) {
  if constexpr (kFunction == Activation::relu) return y > 0.0f ? dy : 0.0f;
  if constexpr (kFunction == Activation::tanh) return dy * (1.0f - y * y);
  if constexpr (kFunction == Activation::leaky_relu) return dy * (y > 0.0f ? 1.0f : a);
  if constexpr (kFunction == Activation::elu) return dy * (y > 0.0f ? 1.0f : y + a);
  if constexpr (kFunction == Activation::scale) return dy * a;
  return dy * (y * (1.0f - y));
}

class Relu final : public Op {
 public:
  Relu(const Context& context, std::int64_t elems) : elems_(elems), threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }
  void run(const OpArgs& args) override {
    const auto* x = static_cast<const float*>(args.tensors[0]);
    auto* y = static_cast<float*>(args.tensors[1]);
    // NaN stays NaN.
#pragma omp parallel for simd num_threads(threads_) if (parallel : threads_ > 1 && elems_ >= kParallelElems)
    for (std::int64_t i = 0; i < elems_; ++i) y[i] = x[i] < 0.0f ? 0.0f : x[i];
  }

 private:
  std::int64_t elems_;
  int threads_;
};

// a x for negative x, b x for others: leaky_relu, scale.
class Bent final : public Op {
 public:
  Bent(const Context& context, std::int64_t elems, float a, float b)
      : elems_(elems), threads_(context.threads), a_(a), b_(b) {}
  std::string implementation() const override { return "own loop"; }
  void run(const OpArgs& args) override {
    const auto* x = static_cast<const float*>(args.tensors[0]);
    auto* y = static_cast<float*>(args.tensors[1]);
    const float a = a_, b = b_;
#pragma omp parallel for simd num_threads(threads_) if (parallel : threads_ > 1 && elems_ >= kParallelElems)
    for (std::int64_t i = 0; i < elems_; ++i) y[i] = x[i] * (x[i] < 0.0f ? a : b);
  }

 private:
  std::int64_t elems_;
  int threads_;
  float a_, b_;
};

template <Activation kFunction>
class ActivationBackward final : public Op {
 public:
  ActivationBackward(const Context& context, std::int64_t elems, double a)
      : elems_(elems), threads_(context.threads), a_(static_cast<float>(a)) {}
  std::string implementation() const override { return "own loop"; }
  void run(const OpArgs& args) override {
    const auto* y = static_cast<const float*>(args.tensors[0]);
    const auto* dy = static_cast<const float*>(args.tensors[1]);
    auto* dx = static_cast<float*>(args.tensors[2]);
    (args.accumulate & 4U) != 0 ? pass<true>(y, dy, dx) : pass<false>(y, dy, dx);
  }

 private:
  template <bool kAdd>
  void pass(const float* y, const float* dy, float* dx) const {
    const float a = a_;
#pragma omp parallel for simd num_threads(threads_) if (parallel : threads_ > 1 && elems_ >= kParallelElems)
    for (std::int64_t i = 0; i < elems_; ++i) {
      const float before = kAdd ? dx[i] : 0.0f, part = pull<kFunction>(y[i], dy[i], a);
      dx[i] = kAdd ? before + part : part;
    }
  }

  std::int64_t elems_;
  int threads_;
  float a_;
};

// dx = dy sigmoid(x) from y = softplus(x): sigmoid(x) = 1 - exp(-y).
class SoftplusBackward final : public Op {
 public:
  SoftplusBackward(const Context& context, std::int64_t elems) : elems_(elems), threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }
  void run(const OpArgs& args) override {
    const auto* y = static_cast<const float*>(args.tensors[0]);
    const auto* dy = static_cast<const float*>(args.tensors[1]);
    auto* dx = static_cast<float*>(args.tensors[2]);
    const bool add = (args.accumulate & 4U) != 0;
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && elems_ >= kParallelElems)
    for (std::int64_t i = 0; i < elems_; ++i) dx[i] = (add ? dx[i] : 0.0f) - dy[i] * std::expm1(-y[i]);
  }

 private:
  std::int64_t elems_;
  int threads_;
};

dnnl::algorithm algorithm_of(Activation function) {
  switch (function) {
    case Activation::tanh: return dnnl::algorithm::eltwise_tanh;
    case Activation::sigmoid: return dnnl::algorithm::eltwise_logistic;
    case Activation::gelu: return dnnl::algorithm::eltwise_gelu_erf;
    case Activation::elu: return dnnl::algorithm::eltwise_elu;
    case Activation::softplus: return dnnl::algorithm::eltwise_soft_relu;
    default: return dnnl::algorithm::undef;
  }
}

// An activation by the library, on the memory as one row.
class LibraryActivation final : public Op {
 public:
  LibraryActivation(const Context& context, const ActivationDims& d, Layout layout)
      : row_({stored_elems(d.shape, layout)}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::a),
        desc_(described_eltwise(context.engine, algorithm_of(d.function), row_, softness(d))),
        body_(context, dnnl::eltwise_forward(desc_), {{DNNL_ARG_SRC, row_}, {DNNL_ARG_DST, row_}}),
        shape_(d.shape),
        layout_(layout),
        keeps_zero_(d.function != Activation::sigmoid && d.function != Activation::softplus) {}

  std::string implementation() const override { return desc_.impl_info_str(); }
  void run(const OpArgs& args) override {
    body_.run({args.tensors[0], args.tensors[1]});
    if (!keeps_zero_) clear_padding(static_cast<float*>(args.tensors[1]), shape_, layout_);
  }

 private:
  // elu: a; softplus: what oneDNN 3 multiplies x by.
  static float softness(const ActivationDims& d) {
    return d.function == Activation::softplus ? 1.0f : static_cast<float>(d.a);
  }

  dnnl::memory::desc row_;
  dnnl::eltwise_forward::primitive_desc desc_;
  Primitive body_;
  Shape shape_;
  Layout layout_;
  bool keeps_zero_;
};

// dx = dy (Phi(x) + x phi(x)) by the library. It overwrites its output, so the result goes to scratch if dx is added
// to.
class GeluBackward final : public Op {
 public:
  GeluBackward(const Context& context, std::int64_t elems)
      : elems_(static_cast<std::size_t>(elems)),
        row_({elems}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::a),
        forward_(described_eltwise(context.engine, dnnl::algorithm::eltwise_gelu_erf, row_)),
        desc_(described_eltwise_backward(context.engine, dnnl::algorithm::eltwise_gelu_erf, row_, forward_)),
        body_(context, dnnl::eltwise_backward(desc_),
              {{DNNL_ARG_SRC, row_}, {DNNL_ARG_DIFF_DST, row_}, {DNNL_ARG_DIFF_SRC, row_}}) {}

  std::string implementation() const override { return desc_.impl_info_str(); }
  std::size_t scratch_bytes() const override { return elems_ * sizeof(float); }
  void run(const OpArgs& args) override {
    const bool add = (args.accumulate & 4U) != 0;
    body_.run({args.tensors[0], args.tensors[1], add ? args.scratch : args.tensors[2]});
    if (add) host_vector_ops().add(DType::f32, args.tensors[2], args.scratch, elems_);
  }

 private:
  std::size_t elems_;
  dnnl::memory::desc row_;
  dnnl::eltwise_forward::primitive_desc forward_;
  dnnl::eltwise_backward::primitive_desc desc_;
  Primitive body_;
};

}  // namespace

std::unique_ptr<Op> make_activation(Context& context, const OpSpec& spec) {
  const auto& d = std::get<ActivationDims>(spec.dims);
  const std::int64_t elems = stored_elems(d.shape, spec.layouts[0]);
  if (spec.kind == OpKind::activation_forward) {
    const auto a = static_cast<float>(d.a);
    if (d.function == Activation::relu) return std::make_unique<Relu>(context, elems);
    if (d.function == Activation::leaky_relu) return std::make_unique<Bent>(context, elems, a, 1.0f);
    if (d.function == Activation::scale) return std::make_unique<Bent>(context, elems, a, a);
    return std::make_unique<LibraryActivation>(context, d, spec.layouts[0]);
  }
  switch (d.function) {
    case Activation::relu: return std::make_unique<ActivationBackward<Activation::relu>>(context, elems, d.a);
    case Activation::tanh: return std::make_unique<ActivationBackward<Activation::tanh>>(context, elems, d.a);
    case Activation::gelu: return std::make_unique<GeluBackward>(context, elems);
    case Activation::leaky_relu:
      return std::make_unique<ActivationBackward<Activation::leaky_relu>>(context, elems, d.a);
    case Activation::elu: return std::make_unique<ActivationBackward<Activation::elu>>(context, elems, d.a);
    case Activation::softplus: return std::make_unique<SoftplusBackward>(context, elems);
    case Activation::scale: return std::make_unique<ActivationBackward<Activation::scale>>(context, elems, d.a);
    case Activation::sigmoid: break;
  }
  return std::make_unique<ActivationBackward<Activation::sigmoid>>(context, elems, d.a);
}

}  // namespace echelon::inline device::onednn
