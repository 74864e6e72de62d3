// SPDX-License-Identifier: Apache-2.0
// The time of an all-reduce in closed form, for numbers of ranks that are too large to simulate their plans
// (comm/collective/plan_time.hpp), on the same network model. For a message of b bytes:
//
//   c = b / bandwidth + o     seconds for which it occupies each of the two cards; o = latency / 2
//   c + o                     seconds from sender to receiver
//   a = b / add_bytes_per_s   seconds for which its receiver adds it
//
// With S segments of b bytes a round of a pipeline takes the longest of S c (the card), S a (the rank) and c + o + a
// (one segment from rank to rank), and the last round ends (S - 1) c later. By algorithm, for k ranks and n bytes:
//
//   ring               k-1 rounds of n/k that add, k-1 rounds that do not
//   halving_doubling   rounds of n/2, n/4, .. that add, and back; another of n each way if k is not a power of two
//   butterfly          log2 k rounds of n; another of n each way if k is not a power of two
//   naive              k-1 messages of n at once, k sums one after another
//   server, direct     k-1 messages of n/s at once to each of s servers, and as many back, piece by piece
//   tree               3 c per segment after the first one, which passes the height of the tree twice
//   binomial           about 1.07 log2(k) c per segment after the first one
//   hierarchical       inner reduce, outer all-reduce of a part on every rank of a host, inner gather
//   shared             copies and sums of a rank (comm/collective/shared.cpp), each at add_bytes_per_s; one host only
//   mpi, nccl          the cheaper of ring and halving_doubling, because the library's algorithm is not known
//
// The ranks of a host share its card. For messages that leave their switch (hosts_per_switch), c follows from the share
// of the uplink. The closed forms of ring, naive, direct and, for powers of two of ranks, butterfly are within 1 % of
// the simulation (tests/unit/planner/test_plan_cost.cpp); plan_pricer.hpp corrects the others. Sources: Hockney 1994;
// Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005); Patarasu, Yuan, JPDC 69 (2009).
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "comm/collective/algorithms.hpp"
#include "comm/collective/plan_time.hpp"

namespace echelon::inline planner {

// The ranks of a run on their hosts: rank r is on host r / ranks_a_host.
struct RankPlacement {
  int ranks = 1;
  int ranks_a_host = 1;

  int hosts() const { return (ranks + ranks_a_host - 1) / ranks_a_host; }
  std::vector<int> hosts_of_ranks() const;
};

struct Collective {
  std::string algorithm = "ring";  // of config/traits/algorithms.hpp except auto, or "direct" (make_direct_allreduce)
  std::int64_t elems = 0;
  double elem_bytes = 4;                       // on the wire
  std::int64_t segment_elems = 0;              // 0: the default of plans
  int servers = 0;                             // for server; 0: all ranks
  std::string inner = "ring", outer = "ring";  // for hierarchical
};

struct CollectiveCost {
  double time_s = 0;  // without other traffic, from the start on all ranks to the end on the last one
  double busy_s = 0;  // of the busiest card: what other collectives lose meanwhile; at most time_s
};

// The largest error of a closed form, corrected as in plan_pricer.hpp, against the plans, as a fraction.
struct FormError {
  double alone = 0, shared = 0;  // with one rank per host, with several
  double odd = 0;                // for numbers of ranks that are not powers of two; 0: as above
};

// The properties of an all-reduce that its plan does not tell. The table has one entry per word of exchange.algorithm
// except auto, and "direct".
struct AllreduceModel {
  enum class Correction : std::uint8_t { part, buffer, levels };  // see plan_pricer.hpp

  std::string_view name;
  CollectiveCost (*closed)(const Collective& collective, const RankPlacement& placement, const Network& network);
  FormError error = {};
  Correction correction = Correction::part;
  bool exact = false;          // the closed form needs no correction if its error is kExactForm
  bool automatic = false;      // exchange.algorithm = "auto" may choose it
  bool sends_whole = false;    // messages are segments of the whole buffer, otherwise of a k-th of it
  bool gathers_whole = false;  // between its halves one rank has the whole buffer
  bool sends_to_one = false;   // each rank sends to the same one or two others all the time
  double used = 1;             // share of its time for which the cards of all ranks are used, for large buffers
  // Totals over k ranks: the number of buffers that are sent, and of messages without segments.
  double (*buffers)(double k) = [](double k) { return 2 * k; };
  double (*messages)(double k) = [](double k) { return 2 * k * std::log2(k); };
  // Null: make_allreduce and price_allreduce find the plan by its name.
  std::shared_ptr<const Plan> (*plan)(const AllreduceRequest& request) = nullptr;
  int hops = 0;
};
inline constexpr double kExactForm = 0.01;

std::span<const AllreduceModel> allreduce_models();
// Throws ConfigError with the nearest name for an unknown one.
const AllreduceModel& allreduce_model(std::string_view name);

// Returns zeros for one rank or no elements. Messages have at least one element. Throws ConfigError for `shared` on
// several hosts and for unknown algorithms. O(log ranks).
CollectiveCost closed_cost(const Collective& collective, const RankPlacement& placement, const Network& network);

}  // namespace echelon::inline planner
