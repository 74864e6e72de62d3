// SPDX-License-Identifier: Apache-2.0
#include "exchange/gossip/topology.hpp"

#include <algorithm>
#include <bit>

#include "base/hash_rng.hpp"

namespace echelon::inline exchange {
namespace {

int receivers_of(GossipTopology topology, bool push_sum, int replicas) {
  switch (topology) {
    case GossipTopology::ring: return std::min(replicas - 1, push_sum ? 1 : 2);
    case GossipTopology::complete: return replicas - 1;
    case GossipTopology::exponential:
    case GossipTopology::random: break;
  }
  return std::min(replicas - 1, 1);
}

// ceil(log2 k)
int log2_up(int k) { return static_cast<int>(std::bit_width(static_cast<unsigned>(k - 1))); }

}  // namespace

GossipGraph::GossipGraph(const GossipKeys& keys, int replicas, std::uint64_t seed)
    : topology_(keys.topology),
      replicas_(replicas),
      seed_(seed),
      receivers_(receivers_of(keys.topology, keys.push_sum, replicas)) {}

std::int64_t GossipGraph::rounds() const {
  if (topology_ == GossipTopology::random) return 0;
  return topology_ == GossipTopology::exponential ? std::max(1, log2_up(replicas_)) : 1;
}

int GossipGraph::draw(int replica, std::int64_t round) const {
  const HashRng random = HashRng(seed_, "gossip").at(static_cast<std::uint64_t>(round));
  const auto further = random.below(static_cast<std::uint64_t>(replica), static_cast<std::uint64_t>(replicas_ - 1));
  return (replica + 1 + static_cast<int>(further)) % replicas_;
}

Neighbours GossipGraph::at(int replica, std::int64_t round) const {
  Neighbours all;
  if (replicas_ == 1) return all;
  const auto on = [&](int distance) { return ((replica + distance) % replicas_ + replicas_) % replicas_; };
  const auto add = [&](int distance) {
    all.send_to.push_back(on(distance));
    all.receive_from.push_back(on(-distance));
  };
  switch (topology_) {
    case GossipTopology::ring:
      add(1);
      if (receivers_ == 2) add(-1);
      break;
    case GossipTopology::exponential: add(1 << (round % rounds())); break;
    case GossipTopology::complete:
      for (int distance = 1; distance < replicas_; ++distance) add(distance);
      break;
    case GossipTopology::random:
      all.send_to.push_back(draw(replica, round));
      for (int other = 0; other < replicas_; ++other)
        if (other != replica && draw(other, round) == replica) all.receive_from.push_back(other);
      break;
  }
  return all;
}

}  // namespace echelon::inline exchange
