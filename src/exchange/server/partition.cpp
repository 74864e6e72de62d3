// SPDX-License-Identifier: Apache-2.0
#include "exchange/server/partition.hpp"

#include <algorithm>
#include <numeric>

#include "comm/collective/server.hpp"
#include "exchange/buckets.hpp"

namespace echelon::inline exchange {
namespace {

// Returns for each bucket the server that holds it, 0 to servers - 1.
std::vector<int> servers_of_buckets(const std::vector<ArenaRange>& buckets, int servers) {
  std::vector<std::size_t> order(buckets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return buckets[a].elems() > buckets[b].elems(); });
  std::vector<std::int64_t> held(static_cast<std::size_t>(servers));
  std::vector<int> server(buckets.size());
  for (const std::size_t b : order) {
    const auto least = std::min_element(held.begin(), held.end());
    *least += buckets[b].elems();
    server[b] = static_cast<int>(least - held.begin());
  }
  return server;
}

}  // namespace

std::vector<PartitionedBucket> partition_over_servers(const ExchangeConfig& config, const AllreduceRequest& request,
                                                      const ParameterSet& parameters, DType dtype) {
  const bool whole = config.server.partition == ServerPartition::variables;
  const int servers = server_count(request);
  double bucket_bytes = config.bucket_mb * 1024 * 1024;
  if (whole)
    bucket_bytes =
        std::min(bucket_bytes, static_cast<double>(parameters.elems()) * static_cast<double>(size_of(dtype)) / servers);
  const std::vector<ArenaRange> ranges = make_buckets(parameters, size_of(dtype), bucket_bytes);
  const std::vector<int> holders = servers_of_buckets(ranges, servers);
  std::vector<PartitionedBucket> buckets;
  for (std::size_t b = 0; b < ranges.size(); ++b) {
    buckets.push_back({ranges[b], request});
    buckets.back().request.elems = ranges[b].elems();
    if (whole) buckets.back().request.whole_on = holders[b];
  }
  return buckets;
}

}  // namespace echelon::inline exchange
