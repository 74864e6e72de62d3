// SPDX-License-Identifier: Apache-2.0
#include "base/hash_rng.hpp"

#include <cmath>
#include <numbers>

namespace echelon::inline base {

double hash_normal(const HashRng& rng, std::uint64_t index) {
  const double u = 1.0 - rng.uniform(2 * index);  // in (0, 1], so that the logarithm is finite
  const double v = rng.uniform(2 * index + 1);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace echelon::inline base
