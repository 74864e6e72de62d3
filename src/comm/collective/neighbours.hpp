// A sum over the neighbours of a rank in a graph: buffer[i] += the buffers, as they were, of all who send to this rank.
// What gossip mixes weights by (exchange/gossip/). A rank waits for its neighbours alone: for those that it receives
// from, and for those that it sends to where the transport does not keep the message.
//
// Ranks are the nodes, links may go one way. One step deep; a message each link and segment. Scratch: for each rank
// that is received from two segments, or one where all is one segment. Sums are in the order of distance (this rank -
// sender) mod k, so ranks with the same senders may differ in the last bits.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/collective/algorithms.hpp"

namespace echelon::inline comm {

struct NeighbourRequest {
  int rank = 0;
  int ranks = 1;
  // Other ranks than this one, each at most once. On all ranks together: a sends to b where b receives from a.
  std::vector<int> send_to, receive_from;
  std::int64_t elems = 0;
  std::int64_t segment_elems = 0;  // longest message; 0: kDefaultSegment
};

// Elements of the longest message of weights, which a transport sends without a handshake (comm/mpi/tcp_settings.hpp).
// A buffer that is longer is summed by several plans, none of which waits for another: as segments of one plan messages
// would wait for a neighbour's segments before them.
constexpr std::int64_t neighbour_message_elems(double elem_bytes) {
  return static_cast<std::int64_t>((256 << 10) / elem_bytes);
}

// Pure; no neighbours or no elements: a plan without steps.
std::shared_ptr<const Plan> make_neighbour_sum(const NeighbourRequest& request);
// Of a graph with so many links, each direction counted: links x S(elems) messages, links x elems, 1 step.
Price price_neighbour_sum(std::int64_t links, std::int64_t elems, std::int64_t segment_elems);

}  // namespace echelon::inline comm
