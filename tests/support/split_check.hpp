// A split run beside the same run unsplit: asserts inside a Catch2 test.
#pragma once

#include "tests/support/split_models.hpp"

namespace echelon::test {

// The same gradients of the first step and weights after the last, to 1e-8 in double, and the same loss. `groups`: one
// replica takes the very micro-batches of all, as batch norm needs (on_one_replica). Gives back the split run's.
SplitResult check_split(const SplitRun& run, bool groups = true);

}  // namespace echelon::test
