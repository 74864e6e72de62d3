// A parameter server's traffic as plans. The buffer is cut into s even parts, one a server.
//
//   inside the workers   s of the k ranks are servers too, spread over the hosts; each keeps its own share of its part:
//                        2(k-1) G over both halves
//   dedicated            the last s ranks are servers alone: what is in their buffer does not enter the sum, and
//                        afterwards they hold their part: 2(k-s) G
//
// Push leaves each part summed on its server, pull brings it from there to all workers; one after the other they are
// the all-reduce `server`. Between them a server may do something else with its part.
#pragma once

#include <memory>

#include "comm/collective/algorithms.hpp"
#include "comm/collective/halves.hpp"

namespace echelon::inline comm {

// Uses rank, ranks, elems, segment_elems, hosts, servers (0: every rank) and dedicated_servers. Throws ConfigError
// where there are not as many ranks as servers, or, dedicated, no worker left.
std::shared_ptr<const Plan> make_push(const AllreduceRequest& request);
std::shared_ptr<const Plan> make_pull(const AllreduceRequest& request);

// The part that each rank serves; empty for those that are no servers.
Parts server_parts(const AllreduceRequest& request);
// The first so many ranks have something to add; all, unless servers are dedicated.
int server_workers(const AllreduceRequest& request);

}  // namespace echelon::inline comm
