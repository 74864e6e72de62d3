// The all-reduce algorithms by name. Adding one: a file `<name>.cpp` here with make_<name>_allreduce and
// price_<name>, a line in config/traits/algorithms.hpp that declares its properties, rows in
// configs/strategies/ALLREDUCE.md. The contract tests run every name for several ranks and sizes, and count its
// messages against its price.
//
// All functions are pure: any thread, no message. A plan is immutable and may be shared and run again each step.
#pragma once

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
  std::int64_t segment_elems = 0;  // pipelining grain where the algorithm has one; 0: its default
  std::vector<int> hosts = {};     // host index by rank; empty: every rank on a host of its own

  int servers = 0;                 // server: how many; 0: every rank
  bool dedicated_servers = false;  // server: they are the last ranks and contribute nothing (server.hpp)
  int whole_on = -1;               // server: the one, from 0, that holds everything; -1: each holds an even part
  std::string inner = "ring";      // hierarchical: inside a host, one of halves_names() (halves.hpp)
  std::string outer = "ring";      // hierarchical: between hosts
};

// The cost of one collective, summed over all ranks; bytes are payload_elems * size_of(dtype).
struct Price {
  std::int64_t messages = 0;
  std::int64_t payload_elems = 0;
  int steps = 0;  // links in the longest chain of dependent messages, where each rank's part is one segment
};

// Those with a plan; those that a library sums on GPUs (`nccl`).
std::vector<std::string> allreduce_names();
std::vector<std::string> device_allreduce_names();
bool sums_on_devices(std::string_view algorithm);

// Whether a power of two of ranks sums in one binary tree over ranks, ((0+1)+(2+3))+.., whatever the element: then k
// ranks that have each summed their own share of 2^m contiguous leaves in that very tree end with the same bits for
// every power of two k up to 2^m.
bool sums_in_one_tree(std::string_view algorithm);
// This rank's plan of an in-place sum: buffer[i] = sum over ranks of buffer[i], the same bits on every rank. All ranks
// give the same request but for `rank`. One rank or no elements: a plan without steps. Throws ConfigError with the
// nearest name for an unknown algorithm, and for one that sums on devices; a failed check for a rank outside [0,
// ranks).
std::shared_ptr<const Plan> make_allreduce(std::string_view algorithm, const AllreduceRequest& request);
// The formula of the price list; for `mpi` and sums on devices the messages are the library's own and the payload is
// the bound 2(k-1)*elems. Throws ConfigError for unknown names and `auto`.
Price price_allreduce(std::string_view algorithm, const AllreduceRequest& request);

// From `root` to all by a binomial tree: ceil(log2 k) steps, k-1 messages, (k-1) elems.
std::shared_ptr<const Plan> make_broadcast(int rank, int ranks, int root, std::int64_t elems);
// The buffer is k blocks of block_elems, of which each rank has filled in its own; afterwards all have all: up a
// binomial tree to rank 0, then down another: 2 ceil(log2 k) steps.
std::shared_ptr<const Plan> make_allgather(int rank, int ranks, std::int64_t block_elems);
Price price_allgather(int ranks, std::int64_t block_elems);
// Likewise for blocks of unlike size, by rank, one behind the other, around a ring: k-1 steps, (k-1) sum of blocks.
// Blocks may be empty; all ranks give the same sizes.
std::shared_ptr<const Plan> make_allgather_blocks(int rank, const std::vector<std::int64_t>& block_elems);
Price price_allgather_blocks(const std::vector<std::int64_t>& block_elems);

// The plan of codecs that encode twice (CodecRoute::direct): reduce-scatter and all-gather straight to and from the
// owners, rank r owning even_part(elems, k, r). Links 2, messages 2 k (k-1), payload 2 (k-1) elems, slots 2k + 1. Parts
// are summed in rank order.
std::shared_ptr<const Plan> make_direct_allreduce(const AllreduceRequest& request);

// Plan and price behind the names, one file each; the price functions need at least two ranks and one element.
#define X(name, ...)                                                                    \
  std::shared_ptr<const Plan> make_##name##_allreduce(const AllreduceRequest& request); \
  Price price_##name(const AllreduceRequest& request);
ECHELON_ALLREDUCE(X)
#undef X

}  // namespace echelon::inline comm
