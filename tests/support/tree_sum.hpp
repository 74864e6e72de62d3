// SPDX-License-Identifier: Apache-2.0
// The plain sum whose bits Group::sum has.
#pragma once

#include <cstddef>
#include <vector>

namespace echelon::test {

// Computes ((0+1)+(2+3))+.. of any number of values; 0 for none. The bits are the same if contiguous blocks of 2^m
// values are first summed in this way, and then the sums of the blocks.
inline double sum_in_tree(std::vector<double> values) {
  for (std::size_t half = 1; half < values.size(); half *= 2)
    for (std::size_t i = 0; i + half < values.size(); i += 2 * half) values[i] += values[i + half];
  return values.empty() ? 0 : values[0];
}

}  // namespace echelon::test
