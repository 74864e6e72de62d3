// The sum of two activations, and the move of one from a layout to another.
#include "base/check.hpp"
#include "device/onednn/planes.hpp"
#include "device/onednn/primitive.hpp"

namespace echelon::inline device::onednn {
namespace {

class Add final : public Op {
 public:
  Add(const Context& context, std::int64_t elems) : elems_(elems), threads_(context.threads) {}
  std::string implementation() const override { return "own loop"; }
  void run(const OpArgs& args) override {
    const auto* a = static_cast<const float*>(args.tensors[0]);
    const auto* b = static_cast<const float*>(args.tensors[1]);
    auto* y = static_cast<float*>(args.tensors[2]);
#pragma omp parallel for simd num_threads(threads_) if (parallel : threads_ > 1 && elems_ >= kParallelElems)
    for (std::int64_t i = 0; i < elems_; ++i) y[i] = a[i] + b[i];
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

class Reorder final : public Op {
 public:
  Reorder(const Context& context, const Shape& shape, Layout from, Layout to)
      : name_(reorder_implementation(context, describe(shape, from), describe(shape, to))),
        body_(make_reorder(context, describe(shape, from), describe(shape, to))) {}
  std::string implementation() const override { return name_; }
  void run(const OpArgs& args) override { body_.run({args.tensors[0], args.tensors[1]}); }

 private:
  std::string name_;
  Primitive body_;
};

}  // namespace

std::unique_ptr<Op> make_add(Context& context, const OpSpec& spec) {
  const Shape& shape = std::get<ElementwiseDims>(spec.dims).shape;
  return std::make_unique<Add>(context, stored_elems(shape, spec.layouts[0]));
}

std::unique_ptr<Op> make_reorder(Context& context, const OpSpec& spec) {
  const auto& d = std::get<ReorderDims>(spec.dims);
  ECHELON_CHECK(d.from.value_or(spec.dtype) == spec.dtype, "{} is not for a device of one dtype", spec.text());
  if (spec.layouts[0] == spec.layouts[1]) return std::make_unique<Copy>(stored_elems(d.shape, spec.layouts[0]));
  return std::make_unique<Reorder>(context, d.shape, spec.layouts[0], spec.layouts[1]);
}

}  // namespace echelon::inline device::onednn
