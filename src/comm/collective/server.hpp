// SPDX-License-Identifier: Apache-2.0
// The traffic of s parameter servers as plans. The buffer of G bytes is cut into s even parts, one per server.
//
//   inside the workers   s of the k ranks are also servers, spread over the hosts; no rank sends a part to itself:
//                        2(k-1) G over both halves
//   dedicated            the last s ranks are servers only: their buffers do not enter the sum, and at the end they
//                        hold their parts: 2(k-s) G
//
// After a push each server holds the sum of its part; a pull sends it from there to all workers. One after the other
// they are the all-reduce `server`, which is 2 steps deep; each server receives (k-1)/s G and sends as much. Between
// the two a server may update its part (Li et al.: Scaling distributed machine learning with the parameter server, OSDI
// 2014). A server adds in the order of ranks r-1, r-2 .. (mod k), so that sums have the same bits in every run.
#pragma once

#include <memory>

#include "comm/collective/algorithms.hpp"
#include "comm/collective/halves.hpp"

namespace echelon::inline comm {

// Both use rank, ranks, elems, segment_elems, hosts, servers (0: every rank) and dedicated_servers. They throw
// ConfigError if there are fewer ranks than servers, or if dedicated servers leave no worker.
std::shared_ptr<const Plan> make_push(const AllreduceRequest& request);
std::shared_ptr<const Plan> make_pull(const AllreduceRequest& request);

// The part that each rank serves; empty for ranks that are not servers. Throws ConfigError as above.
Parts server_parts(const AllreduceRequest& request);
int server_count(const AllreduceRequest& request);
// The number of ranks that contribute, which are ranks [0, n): k, or k - s with dedicated servers.
int server_workers(const AllreduceRequest& request);

}  // namespace echelon::inline comm
