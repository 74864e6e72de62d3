// SPDX-License-Identifier: Apache-2.0
// The formulas of the price list (configs/strategies/ALLREDUCE.md), computed without a plan; each all-reduce has its
// own formula in its file.
#include <algorithm>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "comm/collective/algorithms.hpp"

namespace echelon::inline comm {
Price price_allreduce(std::string_view algorithm, const AllreduceRequest& request) {
  const AlgorithmTraits* known = find_traits(kAlgorithms, algorithm);
  if (!known || known->measured) throw ConfigError(unknown_name("all-reduce", algorithm, allreduce_names()));
  if (request.ranks == 1 || request.elems == 0) return {};
#define X(name, ...) \
  if (algorithm == #name) return price_##name(request);
  ECHELON_ALLREDUCE(X)
#undef X
  return price_mpi(request);  // also for the GPUs' library
}

// Going up the tree, rank r sends its own block and those of the following ranks, as many as its lowest set bit; going
// down, all blocks are sent.
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

}  // namespace echelon::inline comm
