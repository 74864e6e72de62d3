// SPDX-License-Identifier: Apache-2.0
// Sums an arena over a replica's neighbours, bucket by bucket: values += the values of the neighbours of the round. If
// the graph is not balanced, the replicas also exchange one number, the push-sum weight.
//
// A replica only waits for its neighbours of the round. A bucket is cut into pieces of at most neighbour_message_elems
// (comm/collective/neighbours.hpp), each a plan with one message to each neighbour, so that no message is delayed by
// what another neighbour has not sent yet. Bytes and messages of a round: price_neighbour_sum of the graph's links for
// each bucket in such messages, and 8 bytes per link for the weights. Host memory: as much as all senders of a round
// send, and for devices with their own memory another arena.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "exchange/gossip/topology.hpp"
#include "exchange/staging.hpp"
#include "exchange/step_account.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

class NeighbourSums {
 public:
  // Uses the channels [context.first_channel, context.first_channel + channels()). `arena` has the size of the arenas;
  // it and the objects of the context must outlive this object.
  NeighbourSums(const StrategyContext& context, const std::vector<ArenaRange>& buckets, void* arena,
                const GossipGraph& graph);

  int channels() const { return static_cast<int>(pieces_.size()) + 1; }

  // Starts the sum: the arena is final once the device's queue has passed, and so is `weight`, which must stay valid
  // until `settle`. Every replica submits the same rounds in the same order. Never waits for another rank.
  void submit(std::int64_t round, double& weight);
  // Waits for the sums; afterwards they are in the arena, or their copy to it is enqueued on the device, and in the
  // weight. Adds the traffic, the wait and the times to `account`.
  void settle(StepAccount& account);

  // The bytes that all replicas together send in a round.
  double formula_bytes() const { return formula_bytes_; }

 private:
  using Plans = std::vector<std::shared_ptr<const Plan>>;  // by piece; the last is for the weight
  struct Piece {
    ArenaRange range;
    std::int64_t bucket = 0;
  };
  Plans make_plans(std::int64_t round) const;
  const Plans& plans_of(std::int64_t round);
  std::int64_t elems_of(std::size_t job) const { return job < pieces_.size() ? pieces_[job].range.elems() : 1; }
  std::size_t jobs() const { return pieces_.size() + (graph_.balanced() ? 0 : 1); }

  StrategyContext context_;
  std::vector<Piece> pieces_;
  GossipGraph graph_;
  Staging staging_;
  std::map<std::int64_t, Plans> plans_;  // by round, or by round modulo graph_.rounds()
  std::vector<Ticket> tickets_;
  double formula_bytes_ = 0;
};

}  // namespace echelon::inline exchange
