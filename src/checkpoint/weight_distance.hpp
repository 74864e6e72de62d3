// SPDX-License-Identifier: Apache-2.0
// Measures how far two trainings of one model have diverged: compares their weights tensor by tensor.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/weights_file.hpp"

namespace echelon::inline checkpoint {

struct TensorDistance {
  std::string name;
  std::int64_t values = 0;
  double largest = 0;           // max |other - base|; infinity if one of two values is not finite
  double root_mean_square = 0;  // RMS of other - base; infinity as above
  double largest_base = 0;      // max |base| over finite values
  double relative() const;      // largest / largest_base; 0 if both are 0
};

// Compares all tensors by name, in double. Two NaNs, or the same infinity, count as equal. Throws ConfigError if one
// side has a tensor that the other lacks or has in another shape, DataError if a file cannot be read. Memory: two
// copies of the largest tensor in double.
std::vector<TensorDistance> weight_distances(const WeightsFile& base, const WeightsFile& other);

}  // namespace echelon::inline checkpoint
