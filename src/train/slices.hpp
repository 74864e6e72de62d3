// State that each rank holds some rows of, or a row of its own, gathered whole for a checkpoint.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/state.hpp"
#include "comm/group.hpp"

namespace echelon {

// Shows every stateful object of the run to the visitor.
using VisitAll = std::function<void(StateVisitor&)>;
// Bytes of whole tensors, by name.
using WholeTensors = std::map<std::string, std::vector<std::byte>, std::less<>>;

// Of every slice and every per_replica tensor that is shown; slices cut the outermost axis alone. All ranks call it
// with the same tensors, all get the whole.
WholeTensors gather_slices(Group& group, const VisitAll& visit);

}  // namespace echelon
