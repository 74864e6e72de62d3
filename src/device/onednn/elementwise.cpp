// SPDX-License-Identifier: Apache-2.0
// The sum of two activations, with an optional ReLU or its mask, and conversions from one layout to another.
#include <algorithm>
#include <cstdint>

#include "base/check.hpp"
#include "device/onednn/planes.hpp"
#include "device/onednn/primitive.hpp"

namespace echelon::inline device::onednn {
namespace {

// T is the type of the activations, float or BHalf.
template <class T>
class Add final : public Op {
 public:
  Add(const Context& context, std::int64_t elems, bool relu) : elems_(elems), threads_(context.threads), relu_(relu) {}
  std::string implementation() const override { return "own loop"; }
  void run(const OpArgs& args) override { relu_ ? pass<true>(args) : pass<false>(args); }

 private:
  template <bool kRelu>
  void pass(const OpArgs& args) const {
    const auto* a = static_cast<const T*>(args.tensors[0]);
    const auto* b = static_cast<const T*>(args.tensors[1]);
    auto* y = static_cast<T*>(args.tensors[2]);
#pragma omp parallel for simd num_threads(threads_) if (parallel : threads_ > 1 && elems_ >= kParallelElems)
    for (std::int64_t i = 0; i < elems_; ++i) {
      const float sum = widened(a[i]) + widened(b[i]);
      y[i] = kept(rounded_to<T>(sum), !kRelu || !(sum < 0.0f));  // NaN stays NaN
    }
  }

  std::int64_t elems_;
  int threads_;
  bool relu_;
};

template <class T>
class MaskedAdd final : public Op {
 public:
  MaskedAdd(const Context& context, std::int64_t elems) : elems_(elems), threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }
  void run(const OpArgs& args) override {
    const auto* mask = static_cast<const T*>(args.tensors[0]);
    const auto* a = static_cast<const T*>(args.tensors[1]);
    const auto* b = static_cast<const T*>(args.tensors[2]);
    auto* y = static_cast<T*>(args.tensors[3]);
#pragma omp parallel for simd num_threads(threads_) if (parallel : threads_ > 1 && elems_ >= kParallelElems)
    for (std::int64_t i = 0; i < elems_; ++i)
      y[i] = kept(rounded_to<T>(widened(a[i]) + widened(b[i])), widened(mask[i]) > 0.0f);
  }

 private:
  std::int64_t elems_;
  int threads_;
};

class Copy final : public Op {
 public:
  explicit Copy(std::int64_t elems) : elems_(static_cast<std::size_t>(elems)) {}
  std::string implementation() const override { return "copy"; }
  void run(const OpArgs& args) override {
    host_vector_ops().copy(DType::f32, args.tensors[1], args.tensors[0], elems_);
  }

 private:
  std::size_t elems_;
};

// Converts from or to halves of one type, or both, in one layout.
class Cast final : public Op {
 public:
  Cast(const Context& context, DType from, DType to, std::int64_t elems)
      : from_(from), to_(to), elems_(elems), threads_(context.threads) {}
  std::string implementation() const override { return from_ == to_ ? "copy" : "own loop"; }
  void run(const OpArgs& args) override {
    const void* from = args.tensors[0];
    void* to = args.tensors[1];
    with_half(is_half(from_) ? from_ : to_, [&]<class T>(T) {
      if (from_ == to_)
        std::copy_n(static_cast<const T*>(from), elems_, static_cast<T*>(to));
      else if (is_half(from_))
        widen(static_cast<const T*>(from), static_cast<float*>(to), elems_, threads_);
      else
        round_halves(static_cast<const float*>(from), static_cast<T*>(to), elems_, threads_);
    });
  }

 private:
  DType from_, to_;
  std::int64_t elems_;
  int threads_;
};

class Reorder final : public Op {
 public:
  Reorder(const Context& context, const dnnl::memory::desc& from, const dnnl::memory::desc& to)
      : name_(reorder_implementation(context, from, to)), body_(make_reorder(context, from, to)) {}
  std::string implementation() const override { return name_; }
  void run(const OpArgs& args) override { body_.run({args.tensors[0], args.tensors[1]}); }

 private:
  std::string name_;
  Primitive body_;
};

}  // namespace

std::unique_ptr<Op> make_add(Context& context, const OpSpec& spec) {
  const auto& d = std::get<ElementwiseDims>(spec.dims);
  const std::int64_t elems = stored_elems(d.shape, spec.layouts[0]);
  if (spec.kind == OpKind::masked_add) return make_stored<MaskedAdd>(spec.dtype, context, elems);
  return make_stored<Add>(spec.dtype, context, elems, d.relu);
}

std::unique_ptr<Op> make_reorder(Context& context, const OpSpec& spec) {
  const auto& d = std::get<ReorderDims>(spec.dims);
  ECHELON_CHECK(d.from.value_or(spec.dtype) == spec.dtype, "{} converts between dtypes, which this op does not support",
                spec.text());
  if (spec.layouts[0] == spec.layouts[1]) return std::make_unique<Copy>(stored_elems(d.shape, spec.layouts[0]));
  return std::make_unique<Reorder>(context, describe(d.shape, spec.layouts[0]), describe(d.shape, spec.layouts[1]));
}

std::unique_ptr<Op> make_half_reorder(Context& context, const OpSpec& spec, bool native) {
  const auto& d = std::get<ReorderDims>(spec.dims);
  const DType from = d.from.value_or(spec.dtype), to = spec.dtype;
  if (spec.layouts[0] == spec.layouts[1])
    return std::make_unique<Cast>(context, from, to, stored_elems(d.shape, spec.layouts[0]));
  if (native)
    return std::make_unique<Reorder>(context, describe(d.shape, spec.layouts[0], library_type(from)),
                                     describe(d.shape, spec.layouts[1], library_type(to)));
  OpSpec wide = spec;
  wide.dtype = DType::f32;
  wide.dims = ReorderDims{d.shape};
  return make_half_op(context, spec, make_reorder(context, wide));
}

}  // namespace echelon::inline device::onednn
