// SPDX-License-Identifier: Apache-2.0
// The layout and dtype of each activation, chosen op by op while a program is lowered.
//
// Device::layouts gets the layouts that the op's inputs have. For a backward op it gets those of the forward op, and
// for the gradient of a value the layout of that value, so that a forward op and its backward op agree and `saved`
// memory fits. Where the returned layout differs from that of a tensor, a reorder is inserted, once for each (tensor,
// layout). An op gets exactly the returned layouts.
//
// In mixed precision the same reorders change the dtype, where an op that computes in f32 (a loss, a kind that the
// device has not in halves) reads or writes halves, and where the first layer reads the samples.
#include <fmt/format.h>

#include <utility>

#include "base/check.hpp"
#include "model/graph_lowering.hpp"

namespace echelon::inline model {
Layout GraphLowering::presented(int tensor) const {
  const auto found = present_.find(tensor);
  return found == present_.end() ? table_.at(tensor).layout : found->second;
}

Layout GraphLowering::used_layout(int input) const {
  const auto found = used_.find({node_, input});
  return found == used_.end() ? Layout::plain : found->second;
}

void GraphLowering::note_used(int tensor, Layout layout) {
  for (int i = 0; i < static_cast<int>(node().inputs.size()); ++i)
    if (table_.value(input_value(i)) == tensor) used_[{node_, i}] = layout;
}

void GraphLowering::emit_reorder(int from, int to) {
  ReorderDims dims{table_.at(from).shape};
  if (table_.at(from).dtype != table_.at(to).dtype) dims.from = table_.at(from).dtype;
  OpSpec spec{.kind = OpKind::reorder, .dtype = table_.at(to).dtype, .dims = dims};
  spec.layouts[0] = table_.at(from).layout;
  spec.layouts[1] = table_.at(to).layout;
  emit(spec, signature(spec), {from, to}, ScaleSource::one, -1);
}

int GraphLowering::in_form(int tensor, Layout layout, DType dtype) {
  if (table_.at(tensor).layout == layout && table_.at(tensor).dtype == dtype) return tensor;
  if (const int copy = table_.copy_in(tensor, layout, dtype); copy >= 0) return copy;
  const LoweredTensor from = table_.at(tensor);
  const int copy =
      table_.fresh(fmt::format("{} as {} {}", from.name, name_of(layout), name_of(dtype)), from.shape, dtype, layout);
  emit_reorder(tensor, copy);
  table_.remember_copy(tensor, layout, dtype, copy);
  return copy;
}

void GraphLowering::choose_layouts(OpSpec& spec, const std::vector<ArgInfo>& infos, std::vector<int>& args) {
  for (std::size_t a = 0; a < args.size(); ++a) spec.layouts[a] = infos[a].movable ? presented(args[a]) : Layout::plain;
  const LayoutWish wish = device_.layouts(spec);

  for (std::size_t a = 0; a < args.size(); ++a) {
    const Layout needed = infos[a].movable ? wish.layouts[a] : Layout::plain;
    if (infos[a].role == ArgRole::input) {
      if (!backward_) note_used(args[a], needed);
      args[a] = in_form(args[a], needed, infos[a].dtype);
      spec.layouts[a] = needed;
      continue;
    }
    spec.layouts[a] = needed;
    const bool own = table_.at(args[a]).storage == args[a];
    const bool free = own && table_.storage(args[a]).first < 0 && !fixed_plain_.contains(args[a]);
    if (free && table_.at(args[a]).layout != needed) table_.set_layout(args[a], needed);
    if (table_.at(args[a]).layout != needed || table_.at(args[a]).dtype != infos[a].dtype)
      args[a] = detour(args[a], needed, infos[a].dtype);
  }
}

// Returns the tensor that an op writes instead of `target` if the op's layout or dtype differs from that of the memory.
int GraphLowering::detour(int target, Layout layout, DType dtype) {
  const LoweredTensor like = table_.at(target);
  const int written = table_.fresh(like.name, like.shape, dtype, layout);
  detours_.emplace_back(target, written);
  return written;
}

void GraphLowering::finish_detours() {
  for (const auto& [target, written] : std::exchange(detours_, {})) {
    if (table_.storage(target).first < 0) {
      emit_reorder(written, target);
      continue;
    }
    const auto value = gradient_of_.find(target);
    ECHELON_CHECK(value != gradient_of_.end(), "{} is written twice, in two layouts", table_.at(target).name);
    add_to_gradient(value->second, written);
  }
}

}  // namespace echelon::inline model
