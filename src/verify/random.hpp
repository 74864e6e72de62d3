// SPDX-License-Identifier: Apache-2.0
// Random inputs: a new seed every run, printed when a test fails, fixed by ECHELON_TEST_SEED=<number>.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.hpp"
#include "base/hash_rng.hpp"

namespace echelon::verify {

std::uint64_t test_seed();

// n values in [-1, 1); each `name` gives a different stream.
std::vector<double> random_values(std::size_t n, std::string_view name);
// Integers in [low, high].
std::vector<std::int64_t> random_integers(std::size_t n, std::int64_t low, std::int64_t high, std::string_view name);

// Returns `count` of the indices below `all`, in order; the choice depends on the seed and `name`. Returns all of them
// in `make soak`, which runs the test cases tagged [sampled] with ECHELON_TEST_ALL=1.
std::vector<std::size_t> sampled_indices(std::size_t all, std::size_t count, std::string_view name);
template <class T>
std::vector<T> sampled(const std::vector<T>& all, std::size_t count, std::string_view name) {
  std::vector<T> some;
  for (const std::size_t i : sampled_indices(all.size(), count, name)) some.push_back(all[i]);
  return some;
}

// Returns max|a-b| / max|b|; 0 if both are all zero.
double relative_distance(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace echelon::verify
