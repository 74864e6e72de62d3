// All-reduce algorithms that consist of two halves: a reduce, which leaves each part of the buffer summed on its owner,
// and a gather, which brings every part from its owner to all. `hierarchical` runs its exchange between hosts in
// between; a parameter server applies the optimiser there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/collective/algorithms.hpp"
#include "comm/collective/builder.hpp"

namespace echelon::inline comm {

// Of a buffer, by the place in a team that owns them; empty where a place owns nothing. Together they are the buffer.
using Parts = std::vector<ElemRange>;

struct Halves {
  // The largest number of owners in a team of `ranks`; the value for any smaller team is permitted too.
  int (*most_owners)(int ranks);
  // The buffer cut into `owners` parts: which places own them is the choice of the algorithm, where the cuts are
  // depends on elems and owners alone, so that hosts of different sizes cut alike.
  Parts (*parts)(std::int64_t elems, int ranks, int owners);
  // Append this rank's steps. Before gather each owner may replace its part.
  void (*reduce)(PlanBuilder& plan, const Team& team, const Parts& parts);
  void (*gather)(PlanBuilder& plan, const Team& team, const Parts& parts);
  // Of one half: links in the longest chain, and messages over all ranks; no segment is longer than `segment`.
  int (*steps)(int ranks);
  std::int64_t (*messages)(const Parts& parts, std::int64_t segment);
  // Each half sends (ranks - 1) times the buffer; else nothing, and ranks are on one host.
  bool sends = true;
};

// Of algorithms that declare `halves` (config/traits/algorithms.hpp).
std::vector<std::string> halves_names();
// Throws ConfigError with the nearest name of an algorithm that has halves.
const Halves& halves_of(std::string_view name);

// Reduce and gather one after the other, over all ranks of the request; the price is 2 (k-1) elems in all, whatever the
// algorithm.
std::shared_ptr<const Plan> make_by_halves(std::string_view name, const AllreduceRequest& request, int owners);
Price price_by_halves(std::string_view name, const AllreduceRequest& request, int owners);

Team everyone(const AllreduceRequest& request);
// Number of messages of a range: ceil(elems / segment); segment 0: kDefaultSegment.
std::int64_t segments_of(std::int64_t elems, std::int64_t segment);

// What several algorithms share: even parts on the first `owners` places; and the messages of a half where each part
// travels ranks-1 times.
Parts even_parts(std::int64_t elems, int ranks, int owners);
std::int64_t messages_to_all(const Parts& parts, std::int64_t segment);
inline int every_rank(int ranks) { return ranks; }
inline int one_rank(int) { return 1; }

// Defined in the files of those alone.
#define X(name, ...) extern const Halves name##_halves;
ECHELON_ALLREDUCE(X)
#undef X

}  // namespace echelon::inline comm
