// Which server holds what of the parameters (exchange.server.partition).
//
//   ranges     every bucket is cut into even parts, one a server
//   variables  every bucket, of whole parameters, lies on one server: the largest bucket first, each on the server with
//              the fewest bytes so far (Graham 1969: the fullest server has at most 4/3 - 1/(3s) of the least
//              possible). Buckets are no larger than an s-th of all parameters, unless a parameter is
#pragma once

#include <vector>

#include "comm/collective/algorithms.hpp"
#include "config/schema.hpp"
#include "device/parameter.hpp"

namespace echelon::inline exchange {

struct PartitionedBucket {
  ArenaRange range;
  AllreduceRequest request;  // whose server_parts are those of the bucket; make_push, make_pull move it
};

// In the order back-propagation finishes them; `request` tells the ranks and servers. ConfigError as server_parts.
std::vector<PartitionedBucket> partition_over_servers(const ExchangeConfig& config, const AllreduceRequest& request,
                                                      const ParameterSet& parameters, DType dtype);

}  // namespace echelon::inline exchange
