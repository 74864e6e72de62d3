// SPDX-License-Identifier: Apache-2.0
// The transport library's own all-reduce (MPI_Iallreduce), whatever its algorithm. One step, or several if the number
// of elements does not fit the library's int.
#include <algorithm>

#include "comm/collective/algorithms.hpp"

namespace echelon::inline comm {

std::shared_ptr<const Plan> make_mpi_allreduce(const AllreduceRequest& request) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  std::vector<Step> steps;
  if (request.ranks > 1)
    for (std::int64_t begin = 0; begin < request.elems; begin += kMost)
      steps.push_back({.kind = StepKind::library, .range = {begin, std::min(begin + kMost, request.elems)}});
  return std::make_shared<ListedPlan>("mpi", std::move(steps));
}

// The price of a library whose algorithm is not known: the payload of a ring.
Price price_mpi(const AllreduceRequest& request) {
  return {.messages = 0, .payload_elems = 2 * (request.ranks - 1) * request.elems, .steps = 0};
}

}  // namespace echelon::inline comm
