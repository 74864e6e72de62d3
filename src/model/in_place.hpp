// SPDX-License-Identifier: Apache-2.0
// Elementwise ops that overwrite an input which is not read afterwards: less memory, and the written lines are in
// cache.
#pragma once

#include "model/lowered.hpp"

namespace echelon::inline model {

// The output of an activation, a sum or the backward op of a softmax gets the memory of an input if that op is the
// first writer of the output and the last user of the input, and both have the same layout. Changes
// LoweredTensor::storage; called once, before memory is planned. Returns the number of outputs that moved.
int overlay_in_place(Lowered& lowered);

}  // namespace echelon::inline model
