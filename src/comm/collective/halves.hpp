// SPDX-License-Identifier: Apache-2.0
// All-reduce algorithms that consist of two halves: a reduce, after which the owner of each part of the buffer holds
// its sum, and a gather, which sends every part from its owner to all. Between the two, `hierarchical` runs its
// exchange between hosts, and a parameter server applies the optimiser.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/collective/algorithms.hpp"
#include "comm/collective/builder.hpp"

namespace echelon::inline comm {

// The parts of a buffer, by the index of the member of a team that owns them; empty if it owns none. They cover the
// buffer.
using Parts = std::vector<ElemRange>;

struct Halves {
  // The largest number of owners in a team of `ranks`; a team may also use the value of any smaller team.
  int (*most_owners)(int ranks);
  // Cuts the buffer into `owners` parts. The algorithm chooses the members that own them; the cuts depend on elems and
  // owners only, so that hosts with different numbers of ranks cut alike.
  Parts (*parts)(std::int64_t elems, int ranks, int owners);
  // Append this rank's steps. Before `gather` each owner may replace its part.
  void (*reduce)(PlanBuilder& plan, const Team& team, const Parts& parts);
  void (*gather)(PlanBuilder& plan, const Team& team, const Parts& parts);
  // The cost of one half: messages in the longest chain, and messages over all ranks; no segment is longer than
  // `segment`.
  int (*steps)(int ranks);
  std::int64_t (*messages)(const Parts& parts, std::int64_t segment);
  // True: each half sends (ranks - 1) times the buffer. False: nothing is sent, and all ranks are on one host.
  bool sends = true;
};

// The names of the algorithms that declare `halves` (config/traits/algorithms.hpp).
std::vector<std::string> halves_names();
// Throws ConfigError with the nearest name among the algorithms that have halves.
const Halves& halves_of(std::string_view name);

// Runs reduce, then gather, over all ranks of the request. The payload is 2 (k-1) elems in all for every algorithm that
// sends messages.
std::shared_ptr<const Plan> make_by_halves(std::string_view name, const AllreduceRequest& request, int owners);
Price price_by_halves(std::string_view name, const AllreduceRequest& request, int owners);

Team everyone(const AllreduceRequest& request);
// The number of messages of a range: ceil(elems / segment); segment 0 means kDefaultSegment.
std::int64_t segments_of(std::int64_t elems, std::int64_t segment);

// Shared by several algorithms: even parts on the first `owners` members, and the number of messages of a half in which
// each part is sent ranks-1 times.
Parts even_parts(std::int64_t elems, int ranks, int owners);
std::int64_t messages_to_all(const Parts& parts, std::int64_t segment);
inline int every_rank(int ranks) { return ranks; }
inline int one_rank(int) { return 1; }

// Defined only in the files of algorithms that have halves.
#define X(name, ...) extern const Halves name##_halves;
ECHELON_ALLREDUCE(X)
#undef X

}  // namespace echelon::inline comm
