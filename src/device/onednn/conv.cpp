// SPDX-License-Identifier: Apache-2.0
// Convolution by oneDNN's direct (jit) implementations.
//
// The library needs weights in a blocked format, which differs between backward-data and forward: each op keeps its own
// packed copy and renews it once per parameter version. Backward primitives cannot add: if the caller adds, and always
// if a format differs, the result goes to scratch first and is added or reordered from there. If no optimised
// implementation takes the spec's activation layouts, the op reorders them itself, in scratch; with device.tf32 the
// same reorders round the operands.
#include <array>
#include <cstring>
#include <optional>

#include "base/check.hpp"
#include "device/onednn/conv_faults.hpp"
#include "device/onednn/primitive.hpp"
#include "device/onednn/tile_conv_weights.hpp"

namespace echelon::inline device::onednn {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

enum class Result { x, y, weights };  // which one an op computes

// Returns the first of these that runs optimised code: the given layouts, the library's choice, channels last, plain.
// Activations that the op reads have the type of the product, the result keeps its own. `build(x, y)` makes a primitive
// descriptor, or throws dnnl::error if the library has none. Other implementations of the library than its first are
// not tried: for some shapes oneDNN 2.6 divides by zero where it looks for the next one.
template <class Build>
auto choose(const ConvProblem& problem, const Desc& outer_x, const Desc& outer_y, Result result, const Build& build) {
  const Desc inner_x = result == Result::x ? outer_x : problem.multiplied(outer_x);
  const Desc inner_y = result == Result::y ? outer_y : problem.multiplied(outer_y);
  std::vector<std::pair<Desc, Desc>> candidates = {{inner_x, inner_y}};
  for (Tag tag : {Tag::any, problem.volume ? Tag::ndhwc : Tag::nhwc, problem.volume ? Tag::ncdhw : Tag::nchw})
    candidates.push_back({{problem.x, type_of(inner_x), tag}, {problem.y, type_of(inner_y), tag}});
  std::optional<decltype(build(inner_x, inner_y))> fallback;
  for (const auto& [x, y] : candidates) {
    try {
      auto made = build(x, y);
      if (errs(problem, made)) continue;
      if (!falls_back(made.impl_info_str())) return made;
      if (!fallback) fallback = std::move(made);
    } catch (const dnnl::error& e) {
      if (e.status != dnnl_unimplemented) throw;
    }
  }
  ECHELON_CHECK(fallback.has_value(), "oneDNN has no implementation for a convolution");
  return *fallback;
}

// An activation that a primitive needs in a format other than the program's.
class Staged {
 public:
  Staged(const Context& context, const Desc& outer, const Desc& inner, bool into, ScratchPlan& plan)
      : used_(outer != inner) {
    if (!used_) return;
    reorder_ = into ? make_reorder(context, outer, inner) : make_reorder(context, inner, outer);
    if (!into) add_ = make_reorder(context, inner, outer, true);
    offset_ = plan.take(inner.get_size());
  }
  bool used() const { return used_; }
  const void* load(const void* outer, std::byte* scratch) {
    if (!used_) return outer;
    reorder_.run({outer, scratch + offset_});
    return scratch + offset_;
  }
  void* target(void* outer, std::byte* scratch) const { return used_ ? scratch + offset_ : outer; }
  void store(void* outer, std::byte* scratch, bool add) {
    if (used_) (add ? add_ : reorder_).run({scratch + offset_, outer});
  }

 private:
  bool used_;
  Primitive reorder_, add_;
  std::size_t offset_ = 0;
};

std::string text(const char* implementation, bool staged) {
  return std::string(implementation) + (staged ? " between reorders" : "");
}

// y = x * w + b
class ConvForward final : public Op {
 public:
  ConvForward(const Context& context, const ConvDims& d, const Precision& precision, const Desc& x, const Desc& y)
      : bias_(d.bias),
        desc_(pick(context, ConvProblem(d, precision), x, y)),
        x_(context, x, desc_.src_desc(), true, plan_),
        y_(context, y, desc_.dst_desc(), false, plan_),
        scratchpad_(plan_.take(desc_.scratchpad_desc().get_size())),
        weights_(context, ConvProblem(d, precision).plain_w, desc_.weights_desc(), precision),
        body_(context, dnnl::convolution_forward(desc_),
              {{DNNL_ARG_SRC, desc_.src_desc()},
               {DNNL_ARG_WEIGHTS, desc_.weights_desc()},
               {DNNL_ARG_BIAS, desc_.bias_desc()},
               {DNNL_ARG_DST, desc_.dst_desc()},
               {DNNL_ARG_SCRATCHPAD, desc_.scratchpad_desc()}}) {}

  std::size_t scratch_bytes() const override { return plan_.bytes(); }
  std::string implementation() const override { return text(desc_.impl_info_str(), x_.used() || y_.used()); }

  void run(const OpArgs& args) override {
    std::byte* scratch = ScratchPlan::align(args.scratch);
    void* y = args.tensors[bias_ ? 3 : 2];
    body_.run({x_.load(args.tensors[0], scratch), weights_.get(args.tensors[1], args.parameter_version),
               bias_ ? args.tensors[2] : nullptr, y_.target(y, scratch), scratch + scratchpad_});
    y_.store(y, scratch, false);
  }

 private:
  static dnnl::convolution_forward::primitive_desc pick(const Context& context, const ConvProblem& problem,
                                                        const Desc& x, const Desc& y) {
    return choose(problem, x, y, Result::y,
                  [&](const Desc& a, const Desc& b) { return problem.forward(context, a, b); });
  }

  bool bias_;
  ScratchPlan plan_;
  dnnl::convolution_forward::primitive_desc desc_;
  Staged x_, y_;
  std::size_t scratchpad_;
  PackedWeights weights_;
  Primitive body_;
};

// dx = dy * w, with w rotated by 180 degrees
class ConvBackwardData final : public Op {
 public:
  ConvBackwardData(const Context& context, const ConvDims& d, const Precision& precision, const Desc& x, const Desc& y)
      : desc_(pick(context, ConvProblem(d, precision), x, y)),
        y_(context, y, desc_.diff_dst_desc(), true, plan_),
        x_(context, x, desc_.diff_src_desc(), false, plan_),
        precision_(precision),
        threads_(context.threads),
        elems_(x.get_size() / (precision.stores_halves() ? sizeof(BHalf) : sizeof(float))),
        sum_(x_.used() ? 0 : plan_.take(x.get_size())),
        scratchpad_(plan_.take(desc_.scratchpad_desc().get_size())),
        weights_(context, ConvProblem(d, precision).plain_w, desc_.weights_desc(), precision),
        body_(context, dnnl::convolution_backward_data(desc_),
              {{DNNL_ARG_DIFF_DST, desc_.diff_dst_desc()},
               {DNNL_ARG_WEIGHTS, desc_.weights_desc()},
               {DNNL_ARG_DIFF_SRC, desc_.diff_src_desc()},
               {DNNL_ARG_SCRATCHPAD, desc_.scratchpad_desc()}}) {}

  std::size_t scratch_bytes() const override { return plan_.bytes(); }
  std::string implementation() const override { return text(desc_.impl_info_str(), x_.used() || y_.used()); }

  void run(const OpArgs& args) override {
    std::byte* scratch = ScratchPlan::align(args.scratch);
    const bool add = (args.accumulate & 4U) != 0;
    void* dx = args.tensors[2];
    void* target = add && !x_.used() ? scratch + sum_ : x_.target(dx, scratch);
    body_.run({y_.load(args.tensors[0], scratch), weights_.get(args.tensors[1], args.parameter_version), target,
               scratch + scratchpad_});
    x_.store(dx, scratch, add);
    if (add && !x_.used()) add_to(dx, target);
  }

 private:
  void add_to(void* dx, const void* sum) const {
    if (!precision_.stores_halves()) return host_vector_ops().add(DType::f32, dx, sum, elems_);
    with_half(precision_.bf16() ? DType::bf16 : DType::f16, [&]<class T>(T) {
      auto* to = static_cast<T*>(dx);
      add_halves(to, static_cast<const T*>(sum), to, static_cast<std::int64_t>(elems_), threads_);
    });
  }
  static dnnl::convolution_backward_data::primitive_desc pick(const Context& context, const ConvProblem& problem,
                                                              const Desc& x, const Desc& y) {
    return choose(problem, x, y, Result::x,
                  [&](const Desc& a, const Desc& b) { return problem.backward_data(context, a, b); });
  }

  ScratchPlan plan_;
  dnnl::convolution_backward_data::primitive_desc desc_;
  Staged y_, x_;
  Precision precision_;
  int threads_;
  std::size_t elems_, sum_, scratchpad_;
  PackedWeights weights_;
  Primitive body_;
};

// dw = x * dy, db = sums of dy
class ConvBackwardWeights final : public Op {
 public:
  ConvBackwardWeights(const Context& context, const ConvDims& d, const Precision& precision, const Desc& x,
                      const Desc& y)
      : channels_(d.bias ? static_cast<std::size_t>(d.K) : 0),
        desc_(pick(context, ConvProblem(d, precision), x, y)),
        x_(context, x, desc_.src_desc(), true, plan_),
        y_(context, y, desc_.diff_dst_desc(), true, plan_),
        packed_(plan_.take(desc_.diff_weights_desc().get_size())),
        bias_(plan_.take(channels_ * sizeof(float))),
        scratchpad_bytes_(desc_.scratchpad_desc().get_size()),
        scratchpad_(plan_.take(scratchpad_bytes_)),
        clears_(reads_old_scratch(ConvProblem(d, precision))),
        unpack_(make_reorder(context, desc_.diff_weights_desc(), ConvProblem(d, precision).plain_w)),
        add_(make_reorder(context, desc_.diff_weights_desc(), ConvProblem(d, precision).plain_w, true)),
        body_(context, dnnl::convolution_backward_weights(desc_),
              {{DNNL_ARG_SRC, desc_.src_desc()},
               {DNNL_ARG_DIFF_DST, desc_.diff_dst_desc()},
               {DNNL_ARG_DIFF_WEIGHTS, desc_.diff_weights_desc()},
               {DNNL_ARG_DIFF_BIAS, desc_.diff_bias_desc()},
               {DNNL_ARG_SCRATCHPAD, desc_.scratchpad_desc()}}) {}

  std::size_t scratch_bytes() const override { return plan_.bytes(); }
  std::string implementation() const override { return text(desc_.impl_info_str(), x_.used() || y_.used()); }

  void run(const OpArgs& args) override {
    std::byte* scratch = ScratchPlan::align(args.scratch);
    std::byte* packed = scratch + packed_;
    std::byte* bias = scratch + bias_;
    if (clears_) std::memset(scratch + scratchpad_, 0, scratchpad_bytes_);
    body_.run(
        {x_.load(args.tensors[0], scratch), y_.load(args.tensors[1], scratch), packed, bias, scratch + scratchpad_});
    ((args.accumulate & 4U) != 0 ? add_ : unpack_).run({packed, args.tensors[2]});
    if (channels_ == 0) return;
    if ((args.accumulate & 8U) != 0)
      host_vector_ops().add(DType::f32, args.tensors[3], bias, channels_);
    else
      host_vector_ops().copy(DType::f32, args.tensors[3], bias, channels_);
  }

 private:
  static dnnl::convolution_backward_weights::primitive_desc pick(const Context& context, const ConvProblem& problem,
                                                                 const Desc& x, const Desc& y) {
    return choose(problem, x, y, Result::weights,
                  [&](const Desc& a, const Desc& b) { return problem.backward_weights(context, a, b); });
  }

  std::size_t channels_;
  ScratchPlan plan_;
  dnnl::convolution_backward_weights::primitive_desc desc_;
  Staged x_, y_;
  std::size_t packed_, bias_, scratchpad_bytes_, scratchpad_;
  bool clears_;
  Primitive unpack_, add_, body_;
};

// dw and db by tiles of our own, of bf16 with channels last.
class TiledBackwardWeights final : public Op {
 public:
  TiledBackwardWeights(const Context& context, const ConvDims& d)
      : body_(d, context.threads, true, plan_), bias_(d.bias) {}

  std::size_t scratch_bytes() const override { return plan_.bytes(); }
  std::string implementation() const override { return "own tiles"; }
  void run(const OpArgs& args) override {
    body_.run(static_cast<const BHalf*>(args.tensors[0]), static_cast<const BHalf*>(args.tensors[1]),
              {static_cast<float*>(args.tensors[2]), bias_ ? static_cast<float*>(args.tensors[3]) : nullptr,
               (args.accumulate & 4U) != 0, (args.accumulate & 8U) != 0},
              ScratchPlan::align(args.scratch));
  }

 private:
  ScratchPlan plan_;
  TileConvWeights body_;
  bool bias_;
};

// Whether tiles of our own compute the gradient of the weights.
bool tiles_weights(const Context& context, const OpSpec& spec, const Precision& precision) {
  return precision.bf16() && precision.stores_halves() && context.tiles() &&
         TileConvWeights::fits(std::get<ConvDims>(spec.dims)) && spec.layouts[0] == Layout::channels_last &&
         spec.layouts[1] == Layout::channels_last;
}

}  // namespace

std::unique_ptr<Op> make_conv(Context& context, const OpSpec& spec, const Precision& precision) {
  const auto& d = std::get<ConvDims>(spec.dims);
  const ConvProblem problem(d, precision);
  const auto x = [&](int a) { return ConvProblem::activation(problem.x, spec.layouts[a], precision.stored); };
  const auto y = [&](int a) { return ConvProblem::activation(problem.y, spec.layouts[a], precision.stored); };
  const ConvChoice choice = context.convs.of(d);
  if (auto windows = make_window_conv(context, spec, precision)) return windows;
  switch (spec.kind) {
    case OpKind::conv_forward: return std::make_unique<ConvForward>(context, d, precision, x(0), y(d.bias ? 3 : 2));
    case OpKind::conv_backward_data:
      if (auto product = choice.library_data ? nullptr : make_point_conv(context, spec, precision)) return product;
      return std::make_unique<ConvBackwardData>(context, d, precision, x(2), y(0));
    default:
      if (!choice.library_weights && tiles_weights(context, spec, precision))
        return std::make_unique<TiledBackwardWeights>(context, d);
      return std::make_unique<ConvBackwardWeights>(context, d, precision, x(0), y(1));
  }
}

std::unique_ptr<Op> make_conv(Context& context, const OpSpec& spec) { return make_conv(context, spec, kSingle); }

}  // namespace echelon::inline device::onednn
