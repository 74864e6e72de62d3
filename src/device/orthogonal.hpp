// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/hash_rng.hpp"

namespace echelon::inline device {

// A matrix (rows, columns) whose rows, or columns if they are fewer, have length 1 and right angles (Saxe et al. 2014):
// normal draws made orthogonal one after the other, twice each (Gram, Schmidt). Takes O(rows columns min(rows,
// columns)) operations.
std::vector<double> orthogonal_matrix(const HashRng& rng, std::int64_t rows, std::int64_t columns);

}  // namespace echelon::inline device
