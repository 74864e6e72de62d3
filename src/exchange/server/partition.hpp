// SPDX-License-Identifier: Apache-2.0
// Which server holds which parameters (exchange.server.partition).
//
//   ranges     every bucket is cut into even parts, one per server
//   variables  every bucket is held as a whole by one server: largest bucket first, each goes to the server with the
//              fewest bytes so far (Graham 1969: the fullest server then has at most 4/3 - 1/(3s) times the optimum).
//              A bucket is closed once it has exchange.bucket_mb or 1/s of all parameters
#pragma once

#include <vector>

#include "comm/collective/algorithms.hpp"
#include "config/schema.hpp"
#include "device/parameter.hpp"

namespace echelon::inline exchange {

struct PartitionedBucket {
  ArenaRange range;
  AllreduceRequest request;  // describes the bucket to server_parts, make_push and make_pull
};

// Returns the buckets in the order in which back-propagation finishes them. `request` gives the ranks and servers.
// Throws ConfigError as server_parts does.
std::vector<PartitionedBucket> partition_over_servers(const ExchangeConfig& config, const AllreduceRequest& request,
                                                      const ParameterSet& parameters, DType dtype);

}  // namespace echelon::inline exchange
