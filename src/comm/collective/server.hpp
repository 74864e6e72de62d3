// The traffic of s parameter servers as plans. The buffer of G bytes is cut into s even parts, one for each server.
//
//   inside the workers   s of the k ranks are servers too, spread over the hosts; no rank sends a part to itself:
//                        2(k-1) G over both halves
//   dedicated            the last s ranks are servers alone: what is in their buffer does not enter the sum, and
//                        afterwards they hold their part: 2(k-s) G
//
// Push leaves each part summed on its server, pull brings it from there to all workers; one after the other they are
// the all-reduce `server`: 2 links deep, where each server receives (k-1)/s G and sends as much. Between them a server
// may update its part (Li et al.: Scaling distributed machine learning with the parameter server, OSDI 2014). A server
// adds in the order of ranks r-1, r-2 .. (mod k), so that sums have the same bits in every run.
#pragma once

#include <memory>

#include "comm/collective/algorithms.hpp"
#include "comm/collective/halves.hpp"

namespace echelon::inline comm {

// Uses rank, ranks, elems, segment_elems, hosts, servers (0: every rank) and dedicated_servers. Throws ConfigError
// where there are not as many ranks as servers, or, dedicated, no worker left.
std::shared_ptr<const Plan> make_push(const AllreduceRequest& request);
std::shared_ptr<const Plan> make_pull(const AllreduceRequest& request);

// By rank, the part that it serves; empty for ranks that are no servers. Throws ConfigError as above.
Parts server_parts(const AllreduceRequest& request);
// Number of servers.
int server_count(const AllreduceRequest& request);
// Number of ranks that contribute: ranks [0, n); k, or k - s with dedicated servers.
int server_workers(const AllreduceRequest& request);

}  // namespace echelon::inline comm
