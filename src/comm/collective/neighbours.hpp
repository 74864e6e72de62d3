// SPDX-License-Identifier: Apache-2.0
// A sum over the neighbours of a rank in a graph: buffer[i] += the original buffers of all ranks that send to this one.
// Gossip mixes weights with it (exchange/gossip/). A rank waits only for its neighbours: for those that it receives
// from, and for those that it sends to where the transport does not buffer the message.
//
// Ranks are the nodes; links may be one-way. One step deep; one message per link and segment. Scratch memory: two
// segments per rank that is received from, or one where the buffer is one segment. Sums are in the order of the
// distance (this rank - sender) mod k, so ranks with the same senders may differ in the last bits.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/collective/algorithms.hpp"

namespace echelon::inline comm {

struct NeighbourRequest {
  int rank = 0;
  int ranks = 1;
  // Ranks other than this one, each at most once. They must match over all ranks: a sends to b if b receives from a.
  std::vector<int> send_to, receive_from;
  std::int64_t elems = 0;
  std::int64_t segment_elems = 0;  // longest message; 0: kDefaultSegment
};

// The elements of the longest message of weights that a transport sends without a handshake
// (comm/mpi/tcp_settings.hpp). A longer buffer is summed by several plans that do not wait for each other; as segments
// of one plan, messages would wait for the neighbour's earlier segments.
constexpr std::int64_t neighbour_message_elems(double elem_bytes) {
  return static_cast<std::int64_t>((256 << 10) / elem_bytes);
}

// Pure. Without neighbours or elements the plan has no steps.
std::shared_ptr<const Plan> make_neighbour_sum(const NeighbourRequest& request);
// The price for a graph of `links`, each direction counted: links x S(elems) messages, links x elems, 1 step.
Price price_neighbour_sum(std::int64_t links, std::int64_t elems, std::int64_t segment_elems);

}  // namespace echelon::inline comm
