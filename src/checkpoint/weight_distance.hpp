// How far two trainings of one model have come apart: their weights, tensor by tensor.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/weights_file.hpp"

namespace echelon::inline checkpoint {

struct TensorDistance {
  std::string name;
  std::int64_t values = 0;
  double largest = 0;           // max |other - base|; infinity where one of two values is not finite
  double root_mean_square = 0;  // of other - base; likewise
  double largest_base = 0;      // max |base| of finite values
  double relative() const;      // largest / largest_base; 0 where both are 0
};

// Of all tensors, by name; in double. Values that are both NaN, or the same infinity, are equal. ConfigError where one
// has a tensor that the other has not, or has in another shape; DataError where a file cannot be read. Memory: two
// copies of the largest tensor in double.
std::vector<TensorDistance> weight_distances(const WeightsFile& base, const WeightsFile& other);

}  // namespace echelon::inline checkpoint
