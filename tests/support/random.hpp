// Fresh random inputs: a new seed every run, printed when a test fails, fixed by ECHELON_TEST_SEED=<number>.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.hpp"
#include "base/hash_rng.hpp"

namespace echelon::test {

std::uint64_t test_seed();

// n values in [-1, 1), a different stream for each `name`.
std::vector<double> random_values(std::size_t n, std::string_view name);
// Integers in [low, high].
std::vector<std::int64_t> random_integers(std::size_t n, std::int64_t low, std::int64_t high, std::string_view name);

// max|a-b| / max|b|; 0 where both are all zero.
double relative_distance(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace echelon::test
