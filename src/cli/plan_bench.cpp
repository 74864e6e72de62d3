// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_bench.hpp"

#include <algorithm>

#include "cli/metered.hpp"

namespace echelon::cli {
namespace {

constexpr const char* kDirect = "direct";

std::shared_ptr<const Plan> make(const std::string& algorithm, const AllreduceRequest& request) {
  return algorithm == kDirect ? make_direct_allreduce(request) : make_allreduce(algorithm, request);
}

PlanCost measure_once(const std::string& algorithm, AllreduceRequest& request, const std::vector<std::int64_t>& elems) {
  Meter meter;
  PlanCost cost;
  std::vector<std::shared_ptr<const Plan>> plans(elems.size());
  for (std::size_t i = 0; i < elems.size(); ++i) {
    request.elems = elems[i];
    {
      const Metered own(meter);
      plans[i] = make(algorithm, request);
    }
    cost.steps += plans[i]->steps();
  }
  cost.build_s = meter.seconds;
  cost.held_bytes = static_cast<double>(meter.bytes);
  return cost;
}

}  // namespace

std::vector<std::string> planned_algorithms() {
  std::vector<std::string> names =
      names_where(kAlgorithms, [](const AlgorithmTraits& a) { return a.plain_plan() || a.nests; });
  names.emplace_back(kDirect);
  return names;
}

PlanCost measure_plans(const std::string& algorithm, AllreduceRequest request, const std::vector<std::int64_t>& elems,
                       int rounds) {
  PlanCost longest;
  const int k = request.ranks;
  for (const int rank : {0, 1, k / 2, k - 1}) {
    request.rank = std::min(rank, k - 1);
    PlanCost least;
    for (int round = 0; round < rounds; ++round) {
      const PlanCost cost = measure_once(algorithm, request, elems);
      if (round == 0 || cost.build_s < least.build_s) least = cost;
    }
    if (least.build_s > longest.build_s) longest.build_s = least.build_s;
    longest.steps = std::max(longest.steps, least.steps);
    longest.held_bytes = std::max(longest.held_bytes, least.held_bytes);
  }
  return longest;
}

}  // namespace echelon::cli
