// SPDX-License-Identifier: Apache-2.0
// Activations on flat memory, padding included: the relus, scale and derivatives by our own loops; the other functions
// and all of gelu by the library.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/check.hpp"
#include "device/onednn/planes.hpp"
#include "device/onednn/primitive.hpp"
#include "device/onednn/vector_math.hpp"

namespace echelon::inline device::onednn {
namespace {

// Returns a or b; by bits, because a selection between products is not vectorised.
float chosen(bool first, float a, float b) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(kept(a, first)) |
                              std::bit_cast<std::uint32_t>(kept(b, !first)));
}

// dx from dy and the output y: relu dy where y > 0, tanh dy (1 - y^2), sigmoid dy y (1 - y), leaky_relu dy or a dy, elu
// dy or dy (y + a), scale a dy.
template <Activation kFunction>
float pull(float y, float dy, float a) {
  if constexpr (kFunction == Activation::relu) return kept(dy, y > 0.0f);
  if constexpr (kFunction == Activation::tanh) return dy * (1.0f - y * y);
  if constexpr (kFunction == Activation::leaky_relu) return chosen(y > 0.0f, dy, dy * a);
  if constexpr (kFunction == Activation::elu) return chosen(y > 0.0f, dy, dy * (y + a));
  if constexpr (kFunction == Activation::scale) return dy * a;
  return dy * (y * (1.0f - y));
}

// T is the type of activations and their gradients, float or BHalf.
template <class T>
class Relu final : public Op {
 public:
  Relu(const Context& context, std::int64_t elems) : elems_(elems), threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }
  void run(const OpArgs& args) override {
    const auto* x = static_cast<const T*>(args.tensors[0]);
    auto* y = static_cast<T*>(args.tensors[1]);
    // NaN stays NaN.
#pragma omp parallel for simd num_threads(threads_) if (parallel : threads_ > 1 && elems_ >= kParallelElems)
    for (std::int64_t i = 0; i < elems_; ++i) y[i] = kept(x[i], !(widened(x[i]) < 0.0f));
  }

 private:
  std::int64_t elems_;
  int threads_;
};

// a x for negative x, b x for others: leaky_relu, scale.
template <class T>
class Bent final : public Op {
 public:
  Bent(const Context& context, std::int64_t elems, float a, float b)
      : elems_(elems), threads_(context.threads), a_(a), b_(b) {}
  std::string implementation() const override { return "own loop"; }
  void run(const OpArgs& args) override {
    const auto* x = static_cast<const T*>(args.tensors[0]);
    auto* y = static_cast<T*>(args.tensors[1]);
    const float a = a_, b = b_;
#pragma omp parallel for simd num_threads(threads_) if (parallel : threads_ > 1 && elems_ >= kParallelElems)
    for (std::int64_t i = 0; i < elems_; ++i) {
      const float value = widened(x[i]);
      y[i] = rounded_to<T>(value * (value < 0.0f ? a : b));
    }
  }

 private:
  std::int64_t elems_;
  int threads_;
  float a_, b_;
};

template <class T>
class ActivationBackward final : public Op {
 public:
  ActivationBackward(const Context& context, std::int64_t elems, const ActivationDims& d)
      : elems_(elems), threads_(context.threads), function_(d.function), a_(static_cast<float>(d.a)) {}
  std::string implementation() const override { return "own loop"; }
  void run(const OpArgs& args) override {
    switch (function_) {
      case Activation::relu: return pass<Activation::relu>(args);
      case Activation::tanh: return pass<Activation::tanh>(args);
      case Activation::leaky_relu: return pass<Activation::leaky_relu>(args);
      case Activation::elu: return pass<Activation::elu>(args);
      case Activation::scale: return pass<Activation::scale>(args);
      default: return pass<Activation::sigmoid>(args);
    }
  }

 private:
  template <Activation kFunction>
  void pass(const OpArgs& args) const {
    const auto* y = static_cast<const T*>(args.tensors[0]);
    const auto* dy = static_cast<const T*>(args.tensors[1]);
    auto* dx = static_cast<T*>(args.tensors[2]);
    (args.accumulate & 4U) != 0 ? pass<kFunction, true>(y, dy, dx) : pass<kFunction, false>(y, dy, dx);
  }
  template <Activation kFunction, bool kAdd>
  void pass(const T* y, const T* dy, T* dx) const {
    const float a = a_;
#pragma omp parallel for simd num_threads(threads_) if (parallel : threads_ > 1 && elems_ >= kParallelElems)
    for (std::int64_t i = 0; i < elems_; ++i) {
      if constexpr (kFunction == Activation::relu && !kAdd) {
        dx[i] = kept(dy[i], widened(y[i]) > 0.0f);  // nothing to round
      } else {
        const float before = kAdd ? widened(dx[i]) : 0.0f, part = pull<kFunction>(widened(y[i]), widened(dy[i]), a);
        dx[i] = rounded_to<T>(kAdd ? before + part : part);
      }
    }
  }

  std::int64_t elems_;
  int threads_;
  Activation function_;
  float a_;
};

// dx = dy sigmoid(x) from y = softplus(x): sigmoid(x) = 1 - exp(-y) = tanh(y / 2) (1 + exp(-y)), which keeps the digits
// of small y.
template <class T>
class SoftplusBackward final : public Op {
 public:
  SoftplusBackward(const Context& context, std::int64_t elems) : elems_(elems), threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }
  void run(const OpArgs& args) override {
    constexpr std::int64_t kBlock = 1024;
    const bool add = (args.accumulate & 4U) != 0;
#pragma omp parallel for num_threads(threads_) if (threads_ > 1 && elems_ >= kParallelElems)
    for (std::int64_t first = 0; first < elems_; first += kBlock) {
      const T* y = static_cast<const T*>(args.tensors[0]) + first;
      const T* dy = static_cast<const T*>(args.tensors[1]) + first;
      T* dx = static_cast<T*>(args.tensors[2]) + first;
      over_lanes(std::min(kBlock, elems_ - first), [&]<int kLanes>(std::int64_t i) {
        using L = Lanes<kLanes>;
        const auto value = L::load(y + i);
        auto part = L::load(dy + i) * VectorMath<L>::tanh(0.5f * value) * (1.0f + VectorMath<L>::exp(-value));
        if (add) part += L::load(dx + i);
        L::store(dx + i, part);
      });
    }
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
  LibraryActivation(const Context& context, const ActivationDims& d, DType dtype, Layout layout)
      : row_({stored_elems(d.shape, layout)}, library_type(dtype), dnnl::memory::format_tag::a),
        desc_(described_eltwise(context.engine, algorithm_of(d.function), row_, softness(d))),
        body_(context, dnnl::eltwise_forward(desc_), {{DNNL_ARG_SRC, row_}, {DNNL_ARG_DST, row_}}),
        shape_(d.shape),
        layout_(layout),
        halves_(is_half(dtype)),
        keeps_zero_(d.function != Activation::sigmoid && d.function != Activation::softplus) {}

  std::string implementation() const override { return desc_.impl_info_str(); }
  void run(const OpArgs& args) override {
    body_.run({args.tensors[0], args.tensors[1]});
    if (keeps_zero_) return;
    halves_ ? clear_padding(static_cast<BHalf*>(args.tensors[1]), shape_, layout_)
            : clear_padding(static_cast<float*>(args.tensors[1]), shape_, layout_);
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
  bool halves_, keeps_zero_;
};

// dx = dy (Phi(x) + x phi(x)) by the library. It overwrites its output, so the result goes to scratch if dx is added
// to.
class GeluBackward final : public Op {
 public:
  GeluBackward(const Context& context, std::int64_t elems, DType dtype)
      : elems_(elems),
        dtype_(dtype),
        threads_(context.threads),
        row_({elems}, library_type(dtype), dnnl::memory::format_tag::a),
        forward_(described_eltwise(context.engine, dnnl::algorithm::eltwise_gelu_erf, row_)),
        desc_(described_eltwise_backward(context.engine, dnnl::algorithm::eltwise_gelu_erf, row_, forward_)),
        body_(context, dnnl::eltwise_backward(desc_),
              {{DNNL_ARG_SRC, row_}, {DNNL_ARG_DIFF_DST, row_}, {DNNL_ARG_DIFF_SRC, row_}}) {}

  std::string implementation() const override { return desc_.impl_info_str(); }
  std::size_t scratch_bytes() const override { return row_.get_size(); }
  void run(const OpArgs& args) override {
    const bool add = (args.accumulate & 4U) != 0;
    body_.run({args.tensors[0], args.tensors[1], add ? args.scratch : args.tensors[2]});
    if (!add) return;
    auto* dx = static_cast<BHalf*>(args.tensors[2]);
    if (is_half(dtype_)) return add_halves(dx, static_cast<const BHalf*>(args.scratch), dx, elems_, threads_);
    host_vector_ops().add(DType::f32, args.tensors[2], args.scratch, static_cast<std::size_t>(elems_));
  }

 private:
  std::int64_t elems_;
  DType dtype_;
  int threads_;
  dnnl::memory::desc row_;
  dnnl::eltwise_forward::primitive_desc forward_;
  dnnl::eltwise_backward::primitive_desc desc_;
  Primitive body_;
};

// Whether the library computes it.
bool by_library(OpKind kind, Activation function) {
  if (function == Activation::gelu) return true;
  return kind == OpKind::activation_forward && algorithm_of(function) != dnnl::algorithm::undef;
}

}  // namespace

std::unique_ptr<Op> make_activation(Context& context, const OpSpec& spec) {
  const auto& d = std::get<ActivationDims>(spec.dims);
  const std::int64_t elems = stored_elems(d.shape, spec.layouts[0]);
  if (by_library(spec.kind, d.function)) {
    if (is_half(spec.dtype) && !context.avx512_bf16()) {
      OpSpec wide = spec;
      wide.dtype = DType::f32;
      return make_half_op(context, spec, make_activation(context, wide));
    }
    if (spec.kind == OpKind::activation_backward) return std::make_unique<GeluBackward>(context, elems, spec.dtype);
    return std::make_unique<LibraryActivation>(context, d, spec.dtype, spec.layouts[0]);
  }
  if (spec.kind == OpKind::activation_backward) {
    if (d.function == Activation::softplus) return make_stored<SoftplusBackward>(spec.dtype, context, elems);
    return make_stored<ActivationBackward>(spec.dtype, context, elems, d);
  }
  const auto a = static_cast<float>(d.a);
  if (d.function == Activation::relu) return make_stored<Relu>(spec.dtype, context, elems);
  return make_stored<Bent>(spec.dtype, context, elems, a, d.function == Activation::scale ? a : 1.0f);
}

}  // namespace echelon::inline device::onednn
