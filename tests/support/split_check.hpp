// A split run beside the same run unsplit: asserts inside a Catch2 test.
#pragma once

#include <utility>
#include <vector>

#include "tests/support/split_models.hpp"

namespace echelon::test {

// Ranks that one replica is split over, and replicas.
inline const std::vector<std::pair<int, int>> kGroupsAndReplicas = {{2, 1}, {2, 2}, {3, 1}, {3, 2}, {4, 1}, {4, 2}};

// The same gradients of the first step and weights after the last, to 1e-8 in double, and the same loss. `groups`: one
// replica takes the very micro-batches of all, as batch norm needs (on_one_replica). Gives back the split run's.
SplitResult check_split(const SplitRun& run, bool groups = true);

}  // namespace echelon::test
