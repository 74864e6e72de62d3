// Sequences cut along their steps and put together again (parallel/staircase.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "model/layer.hpp"

namespace echelon::inline model {

// (T, F), or tokens (T) where `indices`, to as many values of these steps, behind one another; they add up to T.
LayerPtr make_split_steps(std::vector<std::int64_t> steps, bool indices);
// (T1, F), (T2, F), .. -> (T1 + T2 + .., F)
LayerPtr make_join_steps();

}  // namespace echelon::inline model
