// What [exchange] asks of an all-reduce.
#pragma once

#include <vector>

#include "base/dtype.hpp"
#include "comm/collective/algorithms.hpp"
#include "config/schema.hpp"

namespace echelon::inline exchange {

// Of no elements yet, for rank 0; `hosts` as in Transport::hosts. Throws ConfigError where there are fewer ranks than
// exchange.servers. With exchange.server.ranks the ranks are all of the world, the last of them servers.
AllreduceRequest allreduce_request(const ExchangeConfig& config, const std::vector<int>& hosts, DType dtype);

// Whether the all-reduce, or its part inside hosts, is in memory that ranks share.
bool sums_in_memory(const ExchangeConfig& config);

// "ring", "server on 2 of 4 ranks", "hierarchical (tree inside hosts, ring between)"
std::string algorithm_text(const ExchangeConfig& config, int ranks);

}  // namespace echelon::inline exchange
