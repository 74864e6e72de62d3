// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/halves.hpp"

#include "base/error.hpp"
#include "base/nearest.hpp"

namespace echelon::inline comm {

std::vector<std::string> halves_names() {
  return names_where(kAlgorithms, [](const AlgorithmTraits& a) { return a.halves; });
}

const Halves& halves_of(std::string_view name) {
#define X(known, ...)                              \
  if constexpr (algorithm_traits(#known).halves) { \
    if (name == #known) return known##_halves;     \
  }
  ECHELON_ALLREDUCE(X)
#undef X
  throw ConfigError(unknown_name("all-reduce in two halves", name, halves_names()));
}

Team everyone(const AllreduceRequest& request) { return {.ranks = {}, .me = request.rank, .members = request.ranks}; }

std::int64_t segments_of(std::int64_t elems, std::int64_t segment) {
  const std::int64_t grain = segment > 0 ? segment : kDefaultSegment;
  return (elems + grain - 1) / grain;
}

Parts even_parts(std::int64_t elems, int ranks, int owners) {
  Parts parts(static_cast<std::size_t>(ranks));
  for (int i = 0; i < owners; ++i) parts[static_cast<std::size_t>(i)] = even_part(elems, owners, i);
  return parts;
}

std::int64_t messages_to_all(const Parts& parts, std::int64_t segment) {
  std::int64_t count = 0;
  for (const ElemRange part : parts) count += segments_of(part.elems(), segment);
  return (static_cast<std::int64_t>(parts.size()) - 1) * count;
}

std::shared_ptr<const Plan> make_by_halves(std::string_view name, const AllreduceRequest& request, int owners) {
  const Halves& halves = halves_of(name);
  PlanBuilder plan(request.segment_elems);
  if (request.elems > 0) {
    const Team team = everyone(request);
    const Parts parts = halves.parts(request.elems, request.ranks, owners);
    halves.reduce(plan, team, parts);
    halves.gather(plan, team, parts);
  }
  return plan.finish(std::string(name));
}

Price price_by_halves(std::string_view name, const AllreduceRequest& request, int owners) {
  const Halves& halves = halves_of(name);
  const Parts parts = halves.parts(request.elems, request.ranks, owners);
  return {.messages = 2 * halves.messages(parts, request.segment_elems),
          .payload_elems = 2 * (request.ranks - 1) * request.elems,
          .steps = 2 * halves.steps(request.ranks)};
}

}  // namespace echelon::inline comm
