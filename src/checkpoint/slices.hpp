// SPDX-License-Identifier: Apache-2.0
// The parts of a run's state that its ranks hold: their slices of tensors, and rows gathered for a checkpoint.
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

// Calls visit_state of every stateful object of the run with the visitor, in the same order on all ranks.
using VisitAll = std::function<void(StateVisitor&)>;

// Returns the shape of a tensor in files: whole, whatever this rank holds.
Shape whole_shape(const StateTensor& tensor);
// Returns the shape, in files, of the part that this rank holds.
Shape held_shape(const StateTensor& tensor);
// Returns the part that this rank holds; for a replicated tensor, all of it.
TensorRegion region_of(const StateTensor& tensor);
int folded_axis(const StateTensor& tensor);  // -1: none

// The rows of all replicas, with this rank's extent along the other axes.
struct GatheredTensor {
  Shape shape;
  std::vector<std::byte> bytes;
};
using GatheredTensors = std::map<std::string, GatheredTensor, std::less<>>;  // by name

// Gathers all visited tensors with Placement::rows or per_replica on rank 0 of the group, which writes them; returns
// none on other ranks. Collective and blocking, with the same tensors on all ranks. Each rank sends what it holds once,
// without a copy. A check fails on all ranks if rows are missing or overlap. `holes`: rows that no rank has become
// zeros instead.
GatheredTensors gather_rows(Group& group, const VisitAll& visit, bool holes = false);

// Returns the tensor with gathered rows in place of this rank's rows.
StateTensor with_rows(const StateTensor& tensor, const GatheredTensor& gathered);
// The same for everything that `visit` shows; `gathered` must outlive the result.
VisitAll with_gathered(const VisitAll& visit, const GatheredTensors& gathered);

}  // namespace echelon::inline checkpoint
