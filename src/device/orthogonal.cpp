// SPDX-License-Identifier: Apache-2.0
#include "device/orthogonal.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace echelon::inline device {

std::vector<double> orthogonal_matrix(const HashRng& rng, std::int64_t rows, std::int64_t columns) {
  const auto count = static_cast<std::size_t>(std::min(rows, columns));
  const auto length = static_cast<std::size_t>(std::max(rows, columns));
  std::vector<double> vectors(count * length);  // one after the other
  for (std::size_t i = 0; i < vectors.size(); ++i) vectors[i] = hash_normal(rng, i);
  const auto dot = [&](const double* a, const double* b) {
    double sum = 0;
    for (std::size_t i = 0; i < length; ++i) sum += a[i] * b[i];
    return sum;
  };
  for (std::size_t v = 0; v < count; ++v) {
    double* const own = vectors.data() + v * length;
    for (std::size_t pass = 0; pass < 2; ++pass)
      for (std::size_t before = 0; before < v; ++before) {
        const double* const other = vectors.data() + before * length;
        const double along = dot(own, other);
        for (std::size_t i = 0; i < length; ++i) own[i] -= along * other[i];
      }
    const double norm = std::sqrt(dot(own, own));
    for (std::size_t i = 0; i < length; ++i) own[i] /= norm;
  }
  if (rows <= columns) return vectors;
  std::vector<double> turned(vectors.size());
  for (std::size_t v = 0; v < count; ++v)
    for (std::size_t i = 0; i < length; ++i) turned[i * count + v] = vectors[v * length + i];
  return turned;
}

}  // namespace echelon::inline device
