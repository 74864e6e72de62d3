// SPDX-License-Identifier: Apache-2.0
// Compares a split run with the same run unsplit; asserts inside a Catch2 test.
#pragma once

#include <utility>
#include <vector>

#include "tests/support/split_models.hpp"

namespace echelon::test {

// Pairs of: ranks that one replica is split over, number of replicas.
inline const std::vector<std::pair<int, int>> kGroupsAndReplicas = {{2, 1}, {2, 2}, {3, 1}, {3, 2}, {4, 1}, {4, 2}};

// Checks gradients of the first step, weights after the last (to 1e-8 in double) and losses. `groups`: the one replica
// takes the same micro-batches as all replicas, as batch norm needs (on_one_replica). Returns the split run's result.
SplitResult check_split(const SplitRun& run, bool groups = true);

}  // namespace echelon::test
