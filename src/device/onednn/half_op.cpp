// SPDX-License-Identifier: Apache-2.0
// An f32 op with halves as arguments: inputs are widened into scratch, and so are outputs that the op adds to or writes
// in part; outputs are rounded from there. Scratch: the widened arguments, then that of the inner op.
#include <array>
#include <type_traits>
#include <vector>

#include "base/check.hpp"
#include "device/onednn/halves.hpp"
#include "device/onednn/ops.hpp"
#include "device/onednn/primitive.hpp"
#include "device/packs_weights.hpp"

namespace echelon::inline device::onednn {
namespace {

// T is the type of the halves.
template <class T>
class HalfOp final : public Op, public PacksWeights {
 public:
  HalfOp(const Context& context, const OpSpec& spec, std::unique_ptr<Op> inner)
      : inner_(std::move(inner)), threads_(context.threads) {
    const std::vector<ArgInfo> infos = signature(spec);
    for (std::size_t a = 0; a < infos.size(); ++a) {
      if (!is_half(infos[a].dtype)) continue;
      const std::int64_t elems = stored_elems(infos[a].shape, spec.layouts[a]);
      halves_.push_back({.argument = a,
                         .elems = elems,
                         .wide_at = plan_.take(static_cast<std::size_t>(elems) * sizeof(float)),
                         .input = infos[a].role == ArgRole::input,
                         .in_part = infos[a].in_part});
    }
    arguments_ = infos.size();
    inner_at_ = plan_.take(inner_->scratch_bytes());
  }

  std::size_t saved_bytes() const override { return inner_->saved_bytes(); }
  std::size_t scratch_bytes() const override { return plan_.bytes(); }
  std::string implementation() const override {
    return inner_->implementation() + (std::is_same_v<T, BHalf> ? " on widened bf16" : " on widened f16");
  }
  bool replays() const override { return inner_->replays(); }
  void share_weights(Op& other) override {
    auto* packer = dynamic_cast<PacksWeights*>(inner_.get());
    if (auto* half = dynamic_cast<HalfOp*>(&other); half && packer) packer->share_weights(*half->inner_);
  }

  void run(const OpArgs& args) override {
    std::byte* scratch = ScratchPlan::align(args.scratch);
    std::array<void*, kMaxArgs> tensors{};
    std::copy_n(args.tensors, arguments_, tensors.begin());
    for (const Half& half : halves_) {
      auto* wide = reinterpret_cast<float*>(scratch + half.wide_at);
      tensors[half.argument] = wide;
      if (half.input || half.in_part || (args.accumulate >> half.argument & 1U) != 0)
        widen(static_cast<const T*>(args.tensors[half.argument]), wide, half.elems, threads_);
    }
    OpArgs inner = args;
    inner.tensors = tensors.data();
    inner.scratch = scratch + inner_at_;
    inner_->run(inner);
    for (const Half& half : halves_)
      if (!half.input)
        round_halves(static_cast<const float*>(tensors[half.argument]), static_cast<T*>(args.tensors[half.argument]),
                     half.elems, threads_);
  }

 private:
  struct Half {
    std::size_t argument;
    std::int64_t elems;
    std::size_t wide_at;
    bool input, in_part;
  };

  std::unique_ptr<Op> inner_;
  int threads_;
  std::vector<Half> halves_;
  ScratchPlan plan_;
  std::size_t arguments_ = 0, inner_at_ = 0;
};

}  // namespace

std::unique_ptr<Op> make_half_op(Context& context, const OpSpec& spec, std::unique_ptr<Op> inner) {
  const auto* reorder = std::get_if<ReorderDims>(&spec.dims);
  const DType half = is_half(spec.dtype) || !reorder ? spec.dtype : reorder->from.value_or(spec.dtype);
  return with_half(half, [&]<class T>(T) -> std::unique_ptr<Op> {
    return std::make_unique<HalfOp<T>>(context, spec, std::move(inner));
  });
}

}  // namespace echelon::inline device::onednn
