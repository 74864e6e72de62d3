// The formulas of the price list (comm/README.md), worked out without a plan.
#include <algorithm>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/collective/folded.hpp"
#include "comm/collective/halves.hpp"
#include "comm/collective/hierarchical.hpp"
#include "comm/collective/server.hpp"

namespace echelon {
namespace {

Price price_naive(const AllreduceRequest& request) {
  const std::int64_t k = request.ranks;
  return {.messages = k * (k - 1), .payload_elems = k * (k - 1) * request.elems, .steps = 1};
}

// The number of segments follows from the plan of any rank: 5 steps a round and segment.
Price price_ring(const AllreduceRequest& request) {
  const std::int64_t k = request.ranks, n = request.elems;
  const std::int64_t parts = n < k ? n : k;
  const std::int64_t segments = n < k ? 1 : make_allreduce("ring", request)->steps() / (5 * (k - 1));
  return {.messages = 2 * (k - 1) * parts * segments,
          .payload_elems = 2 * (k - 1) * n,
          .steps = static_cast<int>(2 * (k - 1))};
}

Price price_butterfly(const AllreduceRequest& request) {
  const Folded folded(request.ranks);
  const std::int64_t times = folded.p * folded.rounds() + 2 * folded.r;
  return {.messages = times * segments_of(request.elems, request.segment_elems),
          .payload_elems = times * request.elems,
          .steps = folded.rounds() + (folded.r > 0 ? 2 : 0)};
}

Price price_halving_doubling(const AllreduceRequest& request) {
  return price_by_halves("halving_doubling", request, Folded(request.ranks).p);
}
Price price_binomial(const AllreduceRequest& request) { return price_by_halves("binomial", request, 1); }
Price price_tree(const AllreduceRequest& request) { return price_by_halves("tree", request, 1); }

// Of libraries, whose own way is not known: what a ring moves.
Price price_mpi(const AllreduceRequest& request) {
  return {.messages = 0, .payload_elems = 2 * (request.ranks - 1) * request.elems, .steps = 0};
}

}  // namespace

Price price_allreduce(std::string_view algorithm, const AllreduceRequest& request) {
  const bool known = sums_on_devices(algorithm)
#define ECHELON_KNOWN(name) || algorithm == #name
      ECHELON_ALLREDUCE(ECHELON_KNOWN);
#undef ECHELON_KNOWN
  if (!known) throw ConfigError(unknown_name("all-reduce", algorithm, allreduce_names()));
  if (request.ranks == 1 || request.elems == 0) return {};
#define ECHELON_PRICE(name) \
  if (algorithm == #name) return price_##name(request);
  ECHELON_ALLREDUCE(ECHELON_PRICE)
#undef ECHELON_PRICE
  return price_mpi(request);
}

// Up the tree rank r sends its own block and those of the ranks below it, as many as r's lowest set bit; down it goes
// the whole.
Price price_allgather(int ranks, std::int64_t block_elems) {
  Price price;
  if (ranks == 1 || block_elems == 0) return price;
  for (int bit = 1; bit < ranks; bit <<= 1) price.steps += 2;
  for (int r = 1; r < ranks; ++r) price.payload_elems += (std::min(r & -r, ranks - r) + ranks) * block_elems;
  price.messages = 2 * (ranks - 1);
  return price;
}

Price price_allgather_blocks(const std::vector<std::int64_t>& block_elems) {
  const auto links = static_cast<std::int64_t>(block_elems.size()) - 1;
  Price price;
  for (const std::int64_t elems : block_elems) {
    price.messages += elems > 0 ? links : 0;
    price.payload_elems += links * elems;
  }
  price.steps = price.messages > 0 ? static_cast<int>(links) : 0;
  return price;
}

}  // namespace echelon
