// SPDX-License-Identifier: Apache-2.0
// The largest value of a row and the index of its first occurrence, as a reduction.
#pragma once

#include <cstdint>

namespace echelon::cuda {

struct Largest {
  double value;
  std::int64_t index;
};

struct Larger {
  __device__ Largest operator()(const Largest& a, const Largest& b) const {
    return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
  }
};

}  // namespace echelon::cuda
