// Who sends weights to whom in a round of gossip, and with which factor. Pure: any thread, no message; all replicas
// find the same graph.
//
// Of k replicas, in round t replica i sends to
//   ring         i + 1 and i - 1; with push_sum i + 1 alone
//   exponential  i + 2^(t mod ceil(log2 k))     (one-peer exponential graph: Assran et al., ICML 2019)
//   complete     all others
//   random       one other, drawn from (seed, t, i)
// mod k. A replica keeps the fraction `share` of its values and sends as much to each receiver: columns of the mixing
// matrix sum to 1, so that a round keeps the sum over all replicas. In all graphs but the random one each replica
// receives as much as it sends (`balanced`): rows sum to 1 too, and the weights of push-sum stay 1.
#pragma once

#include <cstdint>
#include <vector>

#include "config/strategies/gossip.hpp"

namespace echelon::inline exchange {

struct Neighbours {
  std::vector<int> send_to, receive_from;
};

class GossipGraph {
 public:
  // replicas >= 1; one replica has no neighbours.
  GossipGraph(const GossipKeys& keys, int replicas, std::uint64_t seed);

  // O(k) for `complete` and `random`, else O(1).
  Neighbours at(int replica, std::int64_t round) const;
  double share() const { return 1.0 / (receivers_ + 1); }
  // Over all replicas in a round, each way counted: k * receivers.
  std::int64_t links() const { return static_cast<std::int64_t>(replicas_) * receivers_; }
  bool balanced() const { return topology_ != GossipTopology::random; }
  // at(i, t) = at(i, t mod rounds()); 0: no two rounds need be alike.
  std::int64_t rounds() const;

 private:
  int draw(int replica, std::int64_t round) const;

  GossipTopology topology_;
  int replicas_;
  std::uint64_t seed_;
  int receivers_;  // of each replica in a round
};

}  // namespace echelon::inline exchange
