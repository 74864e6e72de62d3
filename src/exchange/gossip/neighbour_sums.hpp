// Sums over a replica's neighbours of what lies in an arena, bucket by bucket: values += what the neighbours of the
// round had there. Where the graph is not balanced, one number of each replica travels beside: its push-sum weight.
//
// A replica waits for its neighbours of the round alone: a bucket is cut into pieces of at most
// neighbour_message_elems (comm/collective/neighbours.hpp), each a plan with one message to each neighbour, so that
// none stays back behind what another neighbour has not sent yet. Bytes and messages of a round: price_neighbour_sum of
// the graph's links for each bucket in such messages, and 8 bytes a link for the weights. Host memory: as much as all
// senders of a round send; on devices of their own memory another arena.
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
  // Takes the channels [context.first_channel, context.first_channel + channels()). `arena` has the size of the arenas;
  // it and the context's parts outlive this.
  NeighbourSums(const StrategyContext& context, const std::vector<ArenaRange>& buckets, void* arena,
                const GossipGraph& graph);

  int channels() const { return static_cast<int>(pieces_.size()) + 1; }

  // The arena is final, once the device's queue has passed, and so is `weight`, which stays until `settle`. Every
  // replica submits the same rounds in the same order. Never waits.
  void submit(std::int64_t round, double& weight);
  // Returns once the sums lie in the arena, or are on their way there in the device's queue, and in the weight; adds
  // bytes, the wait and times to `account`.
  void settle(StepAccount& account);

  // Bytes that all replicas together send in a round.
  double formula_bytes() const { return formula_bytes_; }

 private:
  using Plans = std::vector<std::shared_ptr<const Plan>>;  // by piece, then of the weight
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
  std::map<std::int64_t, Plans> plans_;  // by round, or the round modulo graph_.rounds()
  std::vector<Ticket> tickets_;
  double formula_bytes_ = 0;
};

}  // namespace echelon::inline exchange
