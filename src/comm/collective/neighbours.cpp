// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/neighbours.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "comm/collective/builder.hpp"
#include "comm/collective/halves.hpp"

namespace echelon::inline comm {
namespace {

struct Message {
  int distance = 0;  // (receiver - sender) mod ranks
  int sender = 0;
  int peer = 0;
  bool out = false;
};

// All messages of a graph could be passed on one by one in the order of distance, then sender: each rank takes its own
// messages in that order.
std::vector<Message> messages_of(const NeighbourRequest& r) {
  std::vector<Message> all;
  for (const int to : r.send_to) all.push_back({(to - r.rank + r.ranks) % r.ranks, r.rank, to, true});
  for (const int from : r.receive_from) all.push_back({(r.rank - from + r.ranks) % r.ranks, from, from, false});
  std::sort(all.begin(), all.end(), [](const Message& a, const Message& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.sender < b.sender;
  });
  return all;
}

}  // namespace

std::shared_ptr<const Plan> make_neighbour_sum(const NeighbourRequest& request) {
  const std::vector<Message> messages = messages_of(request);
  for (const Message& message : messages)
    ECHELON_CHECK(message.distance != 0, "rank {} is its own neighbour", message.peer);
  const auto senders = static_cast<int>(request.receive_from.size());
  const std::int64_t segments = segments_of(request.elems, request.segment_elems);
  PlanBuilder plan(request.segment_elems, std::max(1, segments > 1 ? 2 * senders : senders));
  for (const ElemRange segment : plan.segments({0, request.elems})) {
    std::vector<PlanBuilder::Aside> arrived;
    for (const Message& message : messages) {
      if (message.out)
        plan.send(message.peer, segment);
      else
        arrived.push_back(plan.receive_aside(message.peer, segment));
    }
    for (const PlanBuilder::Aside& aside : arrived) plan.add(aside);
  }
  return plan.finish("neighbours");
}

Price price_neighbour_sum(std::int64_t links, std::int64_t elems, std::int64_t segment_elems) {
  if (links == 0 || elems == 0) return {};
  return {.messages = links * segments_of(elems, segment_elems), .payload_elems = links * elems, .steps = 1};
}

}  // namespace echelon::inline comm
