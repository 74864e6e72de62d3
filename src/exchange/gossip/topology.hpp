// SPDX-License-Identifier: Apache-2.0
// Which replica sends weights to which others in a round of gossip, and with which factor. Pure functions: any thread
// may call them, no message is sent, and all replicas compute the same graph.
//
// With k replicas, in round t replica i sends to (mod k)
//   ring         i + 1 and i - 1; with push_sum only i + 1
//   exponential  i + 2^(t mod ceil(log2 k))     (one-peer exponential graph: Assran et al., ICML 2019)
//   complete     all others
//   random       one other, drawn from (seed, t, i)
// A replica keeps the fraction `share` of its values and sends the same fraction to each receiver: columns of the
// mixing matrix sum to 1, so that a round preserves the sum over all replicas. In all graphs except the random one each
// replica receives as much as it sends (`balanced`): rows sum to 1 too, and the push-sum weights stay 1.
//
// Graphs of random groups (strategy noloco) are complete inside each group: a permutation of the replicas, drawn from
// (seed, t), is cut into groups of n; the last group has those that are left over, and may be a single replica. All
// members of a group of m replicas have the share 1 / m.
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
  // Requires replicas >= 1; a single replica has no neighbours.
  GossipGraph(const GossipKeys& keys, int replicas, std::uint64_t seed);

  // Random groups of `group` >= 2 replicas, in every round others.
  static GossipGraph of_groups(std::int64_t group, int replicas, std::uint64_t seed);

  // O(k) for `complete`, `random` and groups, else O(1).
  Neighbours at(int replica, std::int64_t round) const;
  // The same for all graphs but those of groups.
  double share() const { return 1.0 / (receivers_ + 1); }
  // The number of directed links over all replicas in a round: k * receivers, and m (m - 1) for each group of m.
  std::int64_t links() const;
  bool balanced() const { return topology_ != GossipTopology::random || grouped(); }
  // The period of the graph: at(i, t) = at(i, t mod rounds()); 0: there is none.
  std::int64_t rounds() const;

 private:
  GossipGraph() = default;
  bool grouped() const { return group_ > 0; }
  Neighbours mates_of(int replica, std::int64_t round) const;
  int draw(int replica, std::int64_t round) const;

  GossipTopology topology_ = GossipTopology::random;
  int replicas_ = 1;
  std::uint64_t seed_ = 0;
  int receivers_ = 0;  // per replica and round; with groups, of a whole one
  int group_ = 0;      // replicas in a group; 0: no groups
};

}  // namespace echelon::inline exchange
