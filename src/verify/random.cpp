// SPDX-License-Identifier: Apache-2.0
#include "verify/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <random>

#include "base/environment.hpp"

namespace echelon::verify {

std::uint64_t test_seed() {
  static const std::uint64_t seed = [] {
    if (const auto fixed = whole_in_environment("ECHELON_TEST_SEED", "a seed", 0, INT64_MAX))
      return static_cast<std::uint64_t>(*fixed);
    return static_cast<std::uint64_t>(std::random_device{}());
  }();
  return seed;
}

std::vector<double> random_values(std::size_t n, std::string_view name) {
  const HashRng rng(test_seed(), name);
  std::vector<double> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = 2 * rng.uniform(i) - 1;
  return values;
}

std::vector<std::int64_t> random_integers(std::size_t n, std::int64_t low, std::int64_t high, std::string_view name) {
  const HashRng rng(test_seed(), name);
  std::vector<std::int64_t> values(n);
  for (std::size_t i = 0; i < n; ++i)
    values[i] = low + static_cast<std::int64_t>(rng.below(i, static_cast<std::uint64_t>(high - low + 1)));
  return values;
}

std::vector<std::size_t> sampled_indices(std::size_t all, std::size_t count, std::string_view name) {
  std::vector<std::size_t> indices(all);
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  if (std::getenv("ECHELON_TEST_ALL") != nullptr || count >= all) return indices;
  const HashRng rng(test_seed(), name);
  for (std::size_t i = 0; i < count; ++i) std::swap(indices[i], indices[i + rng.below(i, all - i)]);
  indices.resize(count);
  std::sort(indices.begin(), indices.end());
  return indices;
}

double relative_distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double distance = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return INFINITY;
    distance = std::max(distance, std::fabs(a[i] - b[i]));
    size = std::max(size, std::fabs(b[i]));
  }
  return distance == 0 ? 0 : size == 0 ? INFINITY : distance / size;
}

}  // namespace echelon::verify
