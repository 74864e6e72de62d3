// Elementwise ops may write over an input that is not read afterwards: less memory, and what is written is in cache.
#pragma once

#include "model/lowered.hpp"

namespace echelon::inline model {

// Gives the output of an activation, an add or a softmax's backward, where it is written first by that op, the memory
// of an input of the same layout whose last use that op is. Returns how many outputs moved.
int overlay_in_place(Lowered& lowered);

}  // namespace echelon::inline model
