// SPDX-License-Identifier: Apache-2.0
// [exchange.gossip]: the keys of strategy "gossip" (exchange/gossip/gossip.cpp).
#pragma once

#include <cstdint>
#include <optional>

#include "config/strategies/keys.hpp"

namespace echelon::inline config {

// The graph of senders and receivers in round t among k replicas (exchange/gossip/topology.hpp).
enum class GossipTopology : std::uint8_t { ring, exponential, complete, random };
// mix_after: a replica mixes its updated weights. mix_before: it mixes the weights on which it computed its gradient.
enum class MixingOrder : std::uint8_t { mix_after, mix_before };

struct GossipKeys {
  GossipTopology topology = GossipTopology::exponential;
  bool push_sum = true;
  MixingOrder order = MixingOrder::mix_after;
  std::int64_t consensus_every = 100;

  // Whether this topology has one-way links, which symmetric mixing cannot use.
  bool one_way() const { return topology == GossipTopology::exponential || topology == GossipTopology::random; }

  template <class Section>
  static void describe(Section& section) {
    section.key("topology", &GossipKeys::topology, section.words({"ring", "exponential", "complete", "random"}),
                "whom a replica sends its weights to in each step: ring: its neighbours; exponential: in turn the "
                "replicas 1, 2, 4, .. ranks further; complete: all replicas; random: one replica drawn in each step");
    section.key("push_sum", &GossipKeys::push_sum, {},
                "true: stochastic gradient push over links that go one way (SGP); false: symmetric mixing (D-PSGD), "
                "topologies ring and complete");
    section.key("order", &GossipKeys::order, section.words({"mix_after", "mix_before"}),
                "mix_after: a replica updates its weights, then mixes them with its neighbours'; mix_before: weights "
                "are mixed beside back-propagation and the update is added, with gradients of the unmixed weights");
    section.key("consensus_every", &GossipKeys::consensus_every, section.range(1, 1e9),
                "number of steps between two meetings at which the mean of all replicas is formed by "
                "exchange.algorithm, to be tested, compared and saved; the end of an epoch is one too");
  }
  std::optional<Misfit> misfit() const {
    if (push_sum || !one_way()) return {};
    const std::string used = topology == GossipTopology::random ? "random" : "exponential";
    return Misfit{"push_sum", "exchange.gossip.push_sum = false mixes symmetrically, and links of topology \"" + used +
                                  "\" go only one way; nearest valid: push_sum = true, or topology = \"ring\" or "
                                  "\"complete\""};
  }
};

}  // namespace echelon::inline config
