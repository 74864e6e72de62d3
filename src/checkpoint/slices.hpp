// Gathers state that is distributed over ranks (rows, per-replica rows, slices, parts of a model) for a checkpoint.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/state.hpp"
#include "comm/group.hpp"

namespace echelon::inline checkpoint {

// Calls visit_state of every stateful object of the run with the visitor, in one order on all ranks.
using VisitAll = std::function<void(StateVisitor&)>;
struct WholeTensor {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<std::byte> bytes;
};
// Shape of a tensor as files have it: whole, whatever this rank holds.
Shape whole_shape(const StateTensor& tensor);
// By name.
using WholeTensors = std::map<std::string, WholeTensor, std::less<>>;

// Of all visited tensors with Placement::rows or per_replica: whole along the outermost axis, along the others the
// extent of this rank. Collective over the group, with the same tensors on all ranks, blocking; every rank gets the
// same. Each tensor is all-gathered: k times its largest part on every rank. A failed check where rows are missing or
// overlap.
// `holes`: rows that no rank has are zeros.
WholeTensors gather_slices(Group& group, const VisitAll& visit, bool holes = false);

// Brings the parts of one model to rank 0 of the group, tensor by tensor: `wholes` there gets the tensors that the
// other ranks visit and rank 0's own slices, slices assembled. On entry `wholes` holds the result of gather_slices for
// the part of each rank. Collective, blocking; nothing else uses the channel meanwhile. Two messages a tensor (label,
// values), one rank after another; memory of the whole state on rank 0 alone.
void gather_parts(Engine& group, int channel, const VisitAll& visit, WholeTensors& wholes);

}  // namespace echelon::inline checkpoint
