// Blocks of several ranks become one tensor.
#pragma once

#include <cstddef>
#include <vector>

#include "parallel/replica_collective.hpp"

namespace echelon::inline parallel {

// `blocks` by rank, elements of `elem` bytes, into `whole`.
void interleave(const GatherForm& form, const std::vector<const std::byte*>& blocks, std::size_t elem, void* whole);

}  // namespace echelon::inline parallel
