// State that each rank holds some rows of, or a row of its own, or that only some ranks hold, gathered whole for a
// checkpoint.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/state.hpp"
#include "comm/group.hpp"

namespace echelon::inline checkpoint {

// Shows every stateful object of the run to the visitor.
using VisitAll = std::function<void(StateVisitor&)>;
struct WholeTensor {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<std::byte> bytes;
};
// By name.
using WholeTensors = std::map<std::string, WholeTensor, std::less<>>;

// Of all that is shown as rows or per_replica: the outermost axis whole, the others as they are shown. All ranks call
// it with the same tensors and get the same.
WholeTensors gather_slices(Group& group, const VisitAll& visit);

// Parts of one model, brought to rank 0 of the group, tensor by tensor so that no rank ever holds more than rank 0
// must: adds there what the other ranks are shown, slices put together, and its own slices. `wholes` holds, on each
// rank, what gather_slices gave of its part. All ranks call it; the channel is of no other use meanwhile.
void gather_parts(Engine& group, int channel, const VisitAll& visit, WholeTensors& wholes);

}  // namespace echelon::inline checkpoint
