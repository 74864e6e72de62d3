// SPDX-License-Identifier: Apache-2.0
// Runs the plans of an all-reduce on data and checks the result against the sum and the row of the price list.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/dtype.hpp"
#include "tests/support/plan_world.hpp"
#include "tests/support/price_rows.hpp"

namespace echelon::test {

template <class T>
std::vector<WireCounters> run_on(const RankPlans& plans, std::vector<std::vector<T>>& data, int window) {
  std::vector<void*> buffers;
  for (std::vector<T>& of_rank : data) buffers.push_back(of_rank.data());
  return run_plans(plans, buffers, dtype_of<T>, window);
}

template <class T>
bool same_bits(const std::vector<std::vector<T>>& data) {
  for (const std::vector<T>& of_rank : data)
    if (!of_rank.empty() && std::memcmp(of_rank.data(), data[0].data(), of_rank.size() * sizeof(T)) != 0) return false;
  return true;
}

// Runs the plans on whole numbers, which every order sums exactly. Checks that all ranks end with the sum, that nothing
// behind the buffer is touched, and that messages, bytes and scratch are the row's. Uses Catch2's CHECK.
void check_exact(const RankPlans& plans, std::int64_t elems, int window, DType dtype, const Row& row);

// Does the same for plans in which the ranks from `workers` on add nothing and need not end with the sum.
void check_exact_workers(const RankPlans& plans, std::int64_t elems, int window, DType dtype, const Row& row,
                         int workers);

}  // namespace echelon::test
