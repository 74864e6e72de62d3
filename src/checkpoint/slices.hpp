// What the ranks of a run hold of its state: their shares of tensors, and rows that are gathered for a checkpoint.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/state.hpp"
#include "base/tensor_region.hpp"
#include "comm/group.hpp"

namespace echelon::inline checkpoint {

// Calls visit_state of every stateful object of the run with the visitor, in one order on all ranks.
using VisitAll = std::function<void(StateVisitor&)>;

// Shape of a tensor as files have it: whole, whatever this rank holds.
Shape whole_shape(const StateTensor& tensor);
// Likewise of what this rank holds.
Shape held_shape(const StateTensor& tensor);
// What this rank holds of it: all, of a replicated one.
TensorRegion region_of(const StateTensor& tensor);
int folded_axis(const StateTensor& tensor);  // -1: none

// Rows of all replicas; along the other axes the extent of this rank.
struct GatheredTensor {
  Shape shape;
  std::vector<std::byte> bytes;
};
using GatheredTensors = std::map<std::string, GatheredTensor, std::less<>>;  // by name

// Of all visited tensors with Placement::rows or per_replica, on rank 0 of the group, which writes them; none on other
// ranks. Collective, with the same tensors on all ranks, blocking. Each rank sends what it holds once, from where it
// lies. A failed check on all ranks where rows are missing or overlap.
// `holes`: rows that no rank has are zeros.
GatheredTensors gather_rows(Group& group, const VisitAll& visit, bool holes = false);

// The tensor with gathered rows in place of those of this rank.
StateTensor with_rows(const StateTensor& tensor, const GatheredTensor& gathered);
// The same of all that `visit` shows; `gathered` outlives the result.
VisitAll with_gathered(const VisitAll& visit, const GatheredTensors& gathered);

}  // namespace echelon::inline checkpoint
