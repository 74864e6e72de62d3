// SPDX-License-Identifier: Apache-2.0
#include "exchange/gossip/topology.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

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

GossipGraph GossipGraph::of_groups(std::int64_t group, int replicas, std::uint64_t seed) {
  GossipGraph graph;
  graph.replicas_ = replicas;
  graph.seed_ = seed;
  graph.group_ = static_cast<int>(std::min<std::int64_t>(group, replicas));
  graph.receivers_ = graph.group_ - 1;
  return graph;
}

std::int64_t GossipGraph::links() const {
  if (!grouped()) return static_cast<std::int64_t>(replicas_) * receivers_;
  const std::int64_t left = replicas_ % group_, whole = replicas_ - left;
  return whole * (group_ - 1) + left * std::max<std::int64_t>(left - 1, 0);
}

std::int64_t GossipGraph::rounds() const {
  if (topology_ == GossipTopology::random) return 0;
  return topology_ == GossipTopology::exponential ? std::max(1, log2_up(replicas_)) : 1;
}

int GossipGraph::draw(int replica, std::int64_t round) const {
  const HashRng random = HashRng(seed_, "gossip").at(static_cast<std::uint64_t>(round));
  const auto further = random.below(static_cast<std::uint64_t>(replica), static_cast<std::uint64_t>(replicas_ - 1));
  return (replica + 1 + static_cast<int>(further)) % replicas_;
}

// The permutation is a shuffle by Fisher and Yates.
Neighbours GossipGraph::mates_of(int replica, std::int64_t round) const {
  const HashRng random = HashRng(seed_, "groups").at(static_cast<std::uint64_t>(round));
  std::vector<int> order(static_cast<std::size_t>(replicas_));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i, i)]);
  const auto at = std::find(order.begin(), order.end(), replica) - order.begin();
  const std::ptrdiff_t first = at - at % group_;
  Neighbours mates;
  for (std::ptrdiff_t i = first; i < std::min<std::ptrdiff_t>(first + group_, replicas_); ++i)
    if (i != at) mates.send_to.push_back(order[static_cast<std::size_t>(i)]);
  mates.receive_from = mates.send_to;
  return mates;
}

Neighbours GossipGraph::at(int replica, std::int64_t round) const {
  Neighbours all;
  if (replicas_ == 1) return all;
  if (grouped()) return mates_of(replica, round);
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
