// How long all-reduce plans take to build for one rank of k, and what they hold.
#pragma once

#include <string>
#include <vector>

#include "comm/collective/algorithms.hpp"

namespace echelon::cli {

struct PlanCost {
  std::int64_t steps = 0;
  double build_s = 0;
  double held_bytes = 0;  // as base/allocations.hpp counts
};

// Algorithms that have a plan of messages between any ranks, and `direct`, the plan of codecs that encode twice.
std::vector<std::string> planned_algorithms();

// Of one plan for each of `elems`, together: of that rank of a few across all for which it takes longest, the least of
// `rounds`. `request` names ranks, hosts and what the algorithm reads.
PlanCost measure_plans(const std::string& algorithm, AllreduceRequest request, const std::vector<std::int64_t>& elems,
                       int rounds);

}  // namespace echelon::cli
