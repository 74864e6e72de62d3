// The time of an all-reduce in closed form, for ranks that are too many for the simulation of their plans
// (comm/collective/plan_time.hpp), on the same network model. Of a message of b bytes:
//
//   c = b / bandwidth + o     it keeps each of the two cards busy; o = latency / 2
//   c + o                     it takes
//   a = b / add_bytes_per_s   adding it takes its receiver
//
// With S segments of b bytes a round of a pipeline takes the longest of S c (the card), S a (the rank) and c + o + a
// (one segment from rank to rank), and the last round ends (S - 1) c later. By algorithm, for k ranks and n bytes:
//
//   ring               k-1 rounds of n/k that add, k-1 rounds that do not
//   halving_doubling   rounds of n/2, n/4, .. that add, and back; another of n each way where k is no power of two
//   butterfly          log2 k rounds of n; likewise
//   naive              k-1 messages of n at once, k sums one after another
//   server, direct     k-1 messages of n/s at once to each of s servers, and as many back, piece by piece
//   tree               3 c a segment behind the first one, which passes the height of the tree twice
//   binomial           about 1.07 log2(k) c a segment behind the first one
//   hierarchical       inner reduce, outer of a part on every rank of a host, inner gather
//   shared             copies and sums of a rank (comm/collective/shared.cpp), each at add_bytes_per_s; one host alone
//   mpi, nccl          the cheaper of ring and halving_doubling: what the library does is not known
//
// Several ranks of a host share its card. Where messages leave the switch (hosts_per_switch), c is that of the share of
// the uplink. Against the simulation (tests/unit/planner/test_plan_cost.cpp): 1 % for ring, naive, direct and, for
// powers of two of ranks, butterfly; for others see plan_pricer.hpp. Sources: Hockney 1994; Thakur, Rabenseifner,
// Gropp, IJHPCA 19 (2005); Patarasu, Yuan, JPDC 69 (2009).
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

// All ranks of a run: rank r is on host r / ranks_a_host.
struct RankPlacement {
  int ranks = 1;
  int ranks_a_host = 1;

  int hosts() const { return (ranks + ranks_a_host - 1) / ranks_a_host; }
  std::vector<int> hosts_of_ranks() const;
};

struct Collective {
  std::string algorithm = "ring";  // of config/traits/algorithms.hpp but auto, or "direct" (make_direct_allreduce)
  std::int64_t elems = 0;
  double elem_bytes = 4;                       // of a message
  std::int64_t segment_elems = 0;              // 0: the default of plans
  int servers = 0;                             // server: 0: all ranks
  std::string inner = "ring", outer = "ring";  // hierarchical
};

struct CollectiveCost {
  double time_s = 0;  // alone, from its start on all ranks to the end on the last one
  double busy_s = 0;  // of the busiest card: what is lost to other collectives meanwhile; at most time_s
};

// How far a closed form, corrected as plan_pricer.hpp says, may be from the plans, as a fraction.
struct FormError {
  double alone = 0, shared = 0;  // one rank a host, several
  double odd = 0;                // ranks that are no power of two; 0: as others
};

// What is known of an all-reduce beside its plan. The table has one of each word of exchange.algorithm but auto, and
// "direct".
struct AllreduceModel {
  enum class Correction : std::uint8_t { part, buffer, levels };  // plan_pricer.hpp

  std::string_view name;
  CollectiveCost (*closed)(const Collective& collective, const RankPlacement& placement, const Network& network);
  FormError error = {};
  Correction correction = Correction::part;
  bool exact = false;          // the closed form needs no correction where its error is kExactForm
  bool automatic = false;      // exchange.algorithm = "auto" may choose it
  bool sends_whole = false;    // messages are cut from the buffer, else from even parts of the ranks
  bool gathers_whole = false;  // between its halves one rank has the whole buffer
  // Of all ranks together, for k of them: buffers that are sent, and messages without segments.
  double (*buffers)(double k) = [](double k) { return 2 * k; };
  double (*messages)(double k) = [](double k) { return 2 * k * std::log2(k); };
  // Null: make_allreduce and price_allreduce by its name.
  std::shared_ptr<const Plan> (*plan)(const AllreduceRequest& request) = nullptr;
  int hops = 0;
};
inline constexpr double kExactForm = 0.01;

std::span<const AllreduceModel> allreduce_models();
// ConfigError with the nearest name for an unknown one.
const AllreduceModel& allreduce_model(std::string_view name);

// O(log ranks). One rank or no elements: zeros. ConfigError for `shared` on several hosts. Messages are at least of one
// element. Unknown algorithms as allreduce_model.
CollectiveCost closed_cost(const Collective& collective, const RankPlacement& placement, const Network& network);

}  // namespace echelon::inline planner
