// The all-reduce algorithms by name. Adding one: a file `<name>.cpp` here with make_<name>_allreduce and
// price_<name>, a line in config/traits/algorithms.hpp that says what it is, a row in comm/README.md.
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
  std::string inner = "ring";      // hierarchical: inside a host, one of halves_names() (halves.hpp)
  std::string outer = "ring";      // hierarchical: between hosts
};

// The cost of one all-reduce over all ranks: messages, bytes, steps.
struct Price {
  std::int64_t messages = 0;
  std::int64_t payload_elems = 0;
  int steps = 0;  // links in the longest chain of dependent messages, where each rank's part is one segment
};

std::vector<std::string> allreduce_names();
std::vector<std::string> device_allreduce_names();
bool sums_on_devices(std::string_view algorithm);

// Whether a power of two of ranks sums in one binary tree over ranks, ((0+1)+(2+3))+.., whatever the element: then k
// ranks that have each summed their own share of 2^m contiguous leaves in that very tree end with the same bits for
// every power of two k up to 2^m.
bool sums_in_one_tree(std::string_view algorithm);
// Throws ConfigError with the nearest name for an unknown algorithm. One rank: a plan without steps.
std::shared_ptr<const Plan> make_allreduce(std::string_view algorithm, const AllreduceRequest& request);
// The formula of the price list; for `mpi` and sums on devices the messages are the library's own and the payload is
// the bound 2(k-1)*elems.
Price price_allreduce(std::string_view algorithm, const AllreduceRequest& request);

// From `root` to all by a binomial tree: ceil(log2 k) steps.
std::shared_ptr<const Plan> make_broadcast(int rank, int ranks, int root, std::int64_t elems);
// The buffer is k blocks of block_elems, of which each rank has filled in its own; afterwards all have all: up a
// binomial tree to rank 0, then down another: 2 ceil(log2 k) steps.
std::shared_ptr<const Plan> make_allgather(int rank, int ranks, std::int64_t block_elems);
Price price_allgather(int ranks, std::int64_t block_elems);
// Likewise for blocks of unlike size, by rank, one behind the other, around a ring: k-1 steps.
std::shared_ptr<const Plan> make_allgather_blocks(int rank, const std::vector<std::int64_t>& block_elems);
Price price_allgather_blocks(const std::vector<std::int64_t>& block_elems);

// The plan of codecs that encode twice: reduce-scatter and all-gather straight to and from the owners of even_part's
// parts.
std::shared_ptr<const Plan> make_direct_allreduce(const AllreduceRequest& request);

// Plan and price behind the names, one file each; the price is asked for two ranks and one element at least.
#define X(name, ...)                                                                    \
  std::shared_ptr<const Plan> make_##name##_allreduce(const AllreduceRequest& request); \
  Price price_##name(const AllreduceRequest& request);
ECHELON_ALLREDUCE(X)
#undef X

}  // namespace echelon::inline comm
