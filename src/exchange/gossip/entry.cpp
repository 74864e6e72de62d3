// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "comm/collective/neighbours.hpp"
#include "exchange/allreduce_request.hpp"
#include "exchange/entry.hpp"
#include "exchange/gossip/topology.hpp"

namespace echelon::inline exchange {
namespace {

// The number of replicas whose weights arrive on the host in a round; more than three random ones are rare.
int arriving(GossipTopology topology, int others) {
  switch (topology) {
    case GossipTopology::complete: return others;
    case GossipTopology::random: return std::min(others, 3);
    case GossipTopology::ring: return std::min(others, 2);
    case GossipTopology::exponential: return std::min(others, 1);
  }
  return 0;
}

// The device keeps the deviation from the mean, and weights in flight.
ExchangeArenas gossip_arenas(const Config& config, const ParameterSet&, int replicas) {
  const GossipKeys& keys = config.exchange.gossip;
  const bool aside = keys.order == MixingOrder::mix_before || keys.topology == GossipTopology::random;
  return {.device = aside ? 2.0 : 1.0,
          .host = static_cast<double>(arriving(keys.topology, replicas - 1)),
          .own = state_arenas(config) + 1.0};
}

std::string gossip_text(const StepExchange& exchange) {
  const GossipKeys& keys = exchange.exchange().gossip;
  const auto elem = static_cast<double>(size_of(exchange.dtype()));
  const GossipGraph graph(keys, exchange.ranks(), 0);
  const std::vector<SummedBucket> buckets = summed_buckets(exchange);
  Price sum;
  for (const auto& [bucket, request] : buckets)
    sum += price_neighbour_sum(graph.links(), bucket.elems(), neighbour_message_elems(elem));
  return fmt::format(
      "gossip, weights to {} of {} replicas in {}: {} a step over all ranks, {} messages; every {} {} all-reduce",
      graph.links() / exchange.ranks(), exchange.ranks() - 1,
      counted(static_cast<std::int64_t>(buckets.size()), "bucket"), bytes_text(exchange.bytes(sum)),
      count_text(sum.messages), counted(keys.consensus_every, "step"),
      algorithm_text(exchange.exchange(), exchange.ranks()));
}

}  // namespace

const StrategyEntry gossip_entry{.family = "gossip",
                                 .make = make_gossip,
                                 .arenas = gossip_arenas,
                                 .step_text = gossip_text,
                                 .forms = {{.sets = {"exchange.gossip.consensus_every=8"}}}};

}  // namespace echelon::inline exchange
