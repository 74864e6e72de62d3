// SPDX-License-Identifier: Apache-2.0
// Measures how long all-reduce plans take to build for one rank of k, and how much memory they hold.
#pragma once

#include <string>
#include <vector>

#include "comm/collective/algorithms.hpp"

namespace echelon::cli {

struct PlanCost {
  std::int64_t steps = 0;
  double build_s = 0;
  double held_bytes = 0;  // as counted by base/allocations.hpp
};

// Returns the algorithms with a message plan between any ranks, and `direct`, the plan of codecs that encode twice.
std::vector<std::string> planned_algorithms();

// Builds one plan for each entry of `elems` and adds their costs. Tries a few ranks spread over all and returns the
// slowest rank; its time is the minimum over `rounds`. `request` names ranks, hosts and the algorithm's settings.
PlanCost measure_plans(const std::string& algorithm, AllreduceRequest request, const std::vector<std::int64_t>& elems,
                       int rounds);

}  // namespace echelon::cli
