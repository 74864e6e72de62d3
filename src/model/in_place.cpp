// SPDX-License-Identifier: Apache-2.0
#include "model/in_place.hpp"

#include <vector>

namespace echelon::inline model {
namespace {

// Returns the arguments whose memory the output, the last argument, may use, in the order of preference.
std::vector<std::size_t> candidates(OpKind kind) {
  switch (kind) {
    case OpKind::activation_forward: return {0};
    case OpKind::activation_backward: return {1, 0};
    case OpKind::add: return {0, 1};
    case OpKind::broadcast_add: return {0};
    case OpKind::masked_add: return {1, 2, 0};
    case OpKind::loss_softmax_backward: return {0};
    default: return {};
  }
}

}  // namespace

int overlay_in_place(Lowered& lowered) {
  const auto storage_of = [&](int tensor) { return lowered.tensors[static_cast<std::size_t>(tensor)].storage; };
  const auto at = [&](int tensor) -> LoweredTensor& { return lowered.tensors[static_cast<std::size_t>(tensor)]; };
  int moved = 0;
  for (int i = 0; i < static_cast<int>(lowered.ops.size()); ++i) {
    const LoweredOp& op = lowered.ops[static_cast<std::size_t>(i)];
    if (op.cut >= 0) continue;
    const int out = storage_of(op.tensors.back());
    if (at(out).home != Home::activation || at(out).persistent || at(out).first != i) continue;
    for (std::size_t a : candidates(op.spec.kind)) {
      const int in = storage_of(op.tensors[a]);
      const bool dies_here = at(in).home == Home::activation && !at(in).persistent && at(in).last == i;
      if (!dies_here || at(in).bytes != at(out).bytes || op.spec.layouts[a] != op.spec.layouts[op.tensors.size() - 1])
        continue;
      at(in).last = at(out).last;
      for (LoweredTensor& tensor : lowered.tensors)
        if (tensor.storage == out) tensor.storage = in;
      ++moved;
      break;
    }
  }
  return moved;
}

}  // namespace echelon::inline model
