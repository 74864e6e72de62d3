// Activations on flat memory, padding included: relu and all derivatives by own loops, tanh and sigmoid by the library.
#include "base/check.hpp"
#include "device/onednn/planes.hpp"
#include "device/onednn/primitive.hpp"

namespace echelon::onednn {
namespace {

// dx of dy by the output: relu dy where y > 0, tanh dy (1 - y^2), sigmoid dy y (1 - y).
template <Activation kFunction>
float pull(float y, float dy) {
  if constexpr (kFunction == Activation::relu) return y > 0.0f ? dy : 0.0f;
  if constexpr (kFunction == Activation::tanh) return dy * (1.0f - y * y);
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

template <Activation kFunction>
class ActivationBackward final : public Op {
 public:
  ActivationBackward(const Context& context, std::int64_t elems) : elems_(elems), threads_(context.threads) {}
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
#pragma omp parallel for simd num_threads(threads_) if (parallel : threads_ > 1 && elems_ >= kParallelElems)
    for (std::int64_t i = 0; i < elems_; ++i) {
      const float before = kAdd ? dx[i] : 0.0f, part = pull<kFunction>(y[i], dy[i]);
      dx[i] = kAdd ? before + part : part;
    }
  }

  std::int64_t elems_;
  int threads_;
};

// tanh or sigmoid of the library, over the memory as one row.
class LibraryActivation final : public Op {
 public:
  LibraryActivation(const Context& context, const ActivationDims& d, Layout layout)
      : row_({stored_elems(d.shape, layout)}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::a),
        desc_({dnnl::prop_kind::forward_training,
               d.function == Activation::tanh ? dnnl::algorithm::eltwise_tanh : dnnl::algorithm::eltwise_logistic, row_,
               0.0f, 0.0f},
              context.engine),
        body_(context, dnnl::eltwise_forward(desc_), {{DNNL_ARG_SRC, row_}, {DNNL_ARG_DST, row_}}),
        shape_(d.shape),
        layout_(layout),
        keeps_zero_(d.function == Activation::tanh) {}

  std::string implementation() const override { return desc_.impl_info_str(); }
  void run(const OpArgs& args) override {
    body_.run({args.tensors[0], args.tensors[1]});
    if (!keeps_zero_ && stored_elems(shape_, layout_) != shape_.elems())
      clear_padding(static_cast<float*>(args.tensors[1]));
  }

 private:
  void clear_padding(float* y) const {
    const Planes planes(shape_[1], layout_);
    const std::int64_t block = planes.pixel(), pixels = shape_[2] * shape_[3], used = shape_[1] % block;
    for (std::int64_t n = 0; n < shape_[0]; ++n) {
      float* last = y + planes.offset(n, shape_[1] - 1, pixels);
      for (std::int64_t i = 0; i < pixels; ++i) std::fill(last + i * block + used, last + (i + 1) * block, 0.0f);
    }
  }

  dnnl::memory::desc row_;
  dnnl::eltwise_forward::primitive_desc desc_;
  Primitive body_;
  Shape shape_;
  Layout layout_;
  bool keeps_zero_;
};

}  // namespace

std::unique_ptr<Op> make_activation(Context& context, const OpSpec& spec) {
  const auto& d = std::get<ActivationDims>(spec.dims);
  const std::int64_t elems = stored_elems(d.shape, spec.layouts[0]);
  if (spec.kind == OpKind::activation_forward) {
    if (d.function == Activation::relu) return std::make_unique<Relu>(context, elems);
    return std::make_unique<LibraryActivation>(context, d, spec.layouts[0]);
  }
  switch (d.function) {
    case Activation::relu: return std::make_unique<ActivationBackward<Activation::relu>>(context, elems);
    case Activation::tanh: return std::make_unique<ActivationBackward<Activation::tanh>>(context, elems);
    case Activation::sigmoid: break;
  }
  return std::make_unique<ActivationBackward<Activation::sigmoid>>(context, elems);
}

}  // namespace echelon::onednn
