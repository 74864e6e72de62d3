// SPDX-License-Identifier: Apache-2.0
// The all-reduce algorithms by name. To add one: a file `<name>.cpp` here with make_<name>_allreduce and price_<name>,
// a line in config/traits/algorithms.hpp that declares its properties, and rows in configs/strategies/ALLREDUCE.md.
// The contract tests run every name for several numbers of ranks and sizes, and compare its message counts with its
// price.
//
// All functions are pure: they send no message and may be called from any thread. A plan is immutable, and may be
// shared and run again in each step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/collective/plan.hpp"
#include "config/traits/algorithms.hpp"

namespace echelon::inline comm {

struct AllreduceRequest {
  int rank = 0;
  int ranks = 1;
  std::int64_t elems = 0;
  std::int64_t segment_elems = 0;  // granularity of pipelining, where the algorithm pipelines; 0: its default
  std::vector<int> hosts = {};     // host index by rank; empty: every rank has a host of its own

  int servers = 0;                 // server: number of servers; 0: every rank
  bool dedicated_servers = false;  // server: the last ranks are the servers and contribute nothing (server.hpp)
  int whole_on = -1;               // server: index of the server that holds everything; -1: each holds an even part
  std::string inner = "ring";      // hierarchical: algorithm inside a host, one of halves_names() (halves.hpp)
  std::string outer = "ring";      // hierarchical: algorithm between hosts
};

// The cost of one collective, summed over all ranks; it sends payload_elems * size_of(dtype) bytes.
struct Price {
  std::int64_t messages = 0;
  std::int64_t payload_elems = 0;
  int steps = 0;  // messages in the longest chain of dependent ones, where each rank's part is one segment

  // Adds a collective beside this one: their chains do not depend on each other.
  Price& operator+=(const Price& beside) {
    messages += beside.messages;
    payload_elems += beside.payload_elems;
    steps = std::max(steps, beside.steps);
    return *this;
  }
};

// The names of the algorithms with a plan.
std::vector<std::string> allreduce_names();
// Whether a library sums on GPUs (`nccl`).
bool sums_on_devices(std::string_view algorithm);

// Returns this rank's plan of an in-place sum: buffer[i] = sum over ranks of buffer[i], with the same bits on every
// rank. All ranks give the same request except for `rank`. For one rank or no elements the plan has no steps. Throws
// ConfigError with the nearest name for an unknown algorithm, and for one that sums on devices. A check fails for a
// rank outside [0, ranks).
std::shared_ptr<const Plan> make_allreduce(std::string_view algorithm, const AllreduceRequest& request);
// Evaluates the formula of the price list. For `mpi` and for sums on devices the library's messages are not known, and
// the payload is the bound 2(k-1)*elems. Throws ConfigError for unknown names and `auto`.
Price price_allreduce(std::string_view algorithm, const AllreduceRequest& request);

// Sends from `root` to all by a binomial tree: ceil(log2 k) steps, k-1 messages, (k-1) elems.
std::shared_ptr<const Plan> make_broadcast(int rank, int ranks, int root, std::int64_t elems);
// The buffer consists of k blocks of block_elems, and each rank has filled in its own; afterwards all ranks have all
// blocks. They go up a binomial tree to rank 0, then down another: 2 ceil(log2 k) steps.
std::shared_ptr<const Plan> make_allgather(int rank, int ranks, std::int64_t block_elems);
Price price_allgather(int ranks, std::int64_t block_elems);
// The same for blocks of different sizes, stored in rank order, around a ring: k-1 steps, (k-1) times the sum of
// blocks. Blocks may be empty; all ranks give the same sizes.
std::shared_ptr<const Plan> make_allgather_blocks(int rank, const std::vector<std::int64_t>& block_elems);
Price price_allgather_blocks(const std::vector<std::int64_t>& block_elems);

// The plan for codecs that encode twice (CodecRoute::direct): reduce-scatter and all-gather directly to and from the
// owners; rank r owns even_part(elems, k, r). 2 steps, 2 k (k-1) messages, payload 2 (k-1) elems, 2k + 1 slots. Parts
// are summed in rank order.
std::shared_ptr<const Plan> make_direct_allreduce(const AllreduceRequest& request);

// Plan and price of each algorithm, defined in its file; price functions need at least two ranks and one element.
#define X(name, ...)                                                                    \
  std::shared_ptr<const Plan> make_##name##_allreduce(const AllreduceRequest& request); \
  Price price_##name(const AllreduceRequest& request);
ECHELON_ALLREDUCE(X)
#undef X

}  // namespace echelon::inline comm
