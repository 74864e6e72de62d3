// SPDX-License-Identifier: Apache-2.0
#include "tests/support/split_check.hpp"

#include <catch2/catch.hpp>

namespace echelon::test {

SplitResult check_split(const SplitRun& run, bool groups) {
  constexpr double kDouble = 1e-8;
  const ParameterSet& parameters = run.replicas.graph.parameters();
  SplitResult split = train_split(run);
  const ReplicaResult whole = train_replicas(on_one_replica(run.replicas, groups));
  if (strategy_traits(run.replicas.strategy).sums_gradients())  // every rank has the sum
    CHECK(tensor_distance(parameters, split.gradients, whole.gradients) <= kDouble);
  CHECK(tensor_distance(parameters, split.weights, whole.weights) <= kDouble);
  CHECK(split.loss == Approx(whole.loss).epsilon(1e-9));
  CHECK(split.correct == Approx(whole.correct).epsilon(1e-12));
  return split;
}

}  // namespace echelon::test
