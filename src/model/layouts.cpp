// Which layout each activation has, decided op by op as a program is lowered.
//
// A device is asked with what the inputs of the op have now. In backward it is offered what the forward op had: the
// gradient of a value as the value lay, whoever wrote it, so that a forward op and its twin agree and `saved` memory
// fits. Where its wish differs from what a tensor has, a reorder is inserted, once for each (tensor, layout).
#include <fmt/format.h>

#include "base/check.hpp"
#include "model/graph_lowering.hpp"

namespace echelon {
namespace {

constexpr int kImageRank = 4;  // only (N, C, H, W) has layouts

}  // namespace

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

int GraphLowering::in_layout(int tensor, Layout layout) {
  if (table_.at(tensor).layout == layout) return tensor;
  if (const int copy = table_.copy_in(tensor, layout); copy >= 0) return copy;
  const LoweredTensor from = table_.at(tensor);
  const int copy = table_.fresh(fmt::format("{} as {}", from.name, name_of(layout)), from.shape, from.dtype, layout);
  OpSpec spec{.kind = OpKind::reorder, .dtype = from.dtype, .dims = ElementwiseDims{from.shape}};
  spec.layouts[0] = from.layout;
  spec.layouts[1] = layout;
  emit(spec, signature(spec), {tensor, copy}, ScaleSource::one, -1);
  table_.remember_copy(tensor, layout, copy);
  return copy;
}

void GraphLowering::choose_layouts(OpSpec& spec, const std::vector<ArgInfo>& infos, std::vector<int>& args) {
  const auto movable = [&](std::size_t a) { return infos[a].movable && table_.at(args[a]).shape.rank() == kImageRank; };
  for (std::size_t a = 0; a < args.size(); ++a) spec.layouts[a] = movable(a) ? presented(args[a]) : Layout::plain;
  const LayoutWish wish = device_.layouts(spec);

  for (std::size_t a = 0; a < args.size(); ++a) {
    const Layout wanted = movable(a) ? wish.layouts[a] : Layout::plain;
    if (infos[a].role == ArgRole::input) {
      if (!backward_) note_used(args[a], wanted);
      args[a] = in_layout(args[a], wanted);
      spec.layouts[a] = wanted;
      continue;
    }
    LoweredTensor& out = table_.at(args[a]);
    const bool open = table_.storage(args[a]).first < 0 && out.storage == args[a] && !fixed_plain_.contains(args[a]);
    if (open && out.layout != wanted) {
      out.layout = wanted;
      out.bytes = static_cast<std::size_t>(stored_elems(out.shape, wanted)) * size_of(out.dtype);
    }
    spec.layouts[a] = out.layout;
  }
}

}  // namespace echelon
