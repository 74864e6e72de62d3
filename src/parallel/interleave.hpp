// SPDX-License-Identifier: Apache-2.0
// The local half of a gather: blocks of several ranks become one tensor.
#pragma once

#include <cstddef>
#include <vector>

#include "parallel/replica_collective.hpp"

namespace echelon::inline parallel {

// Copies `blocks[r]`, (outer, units[r], inner), to `whole`, (outer, sum of units, inner); elements have `elem` bytes.
// Host memory, without overlap.
void interleave(const GatherForm& form, const std::vector<const std::byte*>& blocks, std::size_t elem, void* whole);

}  // namespace echelon::inline parallel
