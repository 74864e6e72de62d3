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

// The device also keeps the slow weights and the outer momentum.
ExchangeArenas noloco_arenas(const Config& config, const ParameterSet&, int replicas) {
  const std::int64_t members = std::min<std::int64_t>(config.exchange.noloco.group, replicas);
  return {.device = 3.0, .host = static_cast<double>(members - 1), .own = state_arenas(config) + 3.0};
}

// `receivers`: "1 of 3 replicas"; `when`: "a step".
std::string mixing_text(const StepExchange& exchange, const GossipGraph& graph, const std::string& receivers,
                        const std::string& when, std::int64_t consensus_every) {
  const auto elem = static_cast<double>(size_of(exchange.dtype()));
  const std::vector<SummedBucket> buckets = summed_buckets(exchange);
  Price sum;
  for (const auto& [bucket, request] : buckets)
    sum += price_neighbour_sum(graph.links(), bucket.elems(), neighbour_message_elems(elem));
  return fmt::format("{}, weights to {} in {}: {} {} over all ranks, {} messages; every {} {} all-reduce",
                     exchange.exchange().strategy, receivers,
                     counted(static_cast<std::int64_t>(buckets.size()), "bucket"), bytes_text(exchange.bytes(sum)),
                     when, count_text(sum.messages), counted(consensus_every, "step"),
                     algorithm_text(exchange.exchange(), exchange.ranks()));
}

std::string gossip_text(const StepExchange& exchange) {
  const GossipKeys& keys = exchange.exchange().gossip;
  const GossipGraph graph(keys, exchange.ranks(), 0);
  return mixing_text(exchange, graph,
                     fmt::format("{} of {} replicas", graph.links() / exchange.ranks(), exchange.ranks() - 1), "a step",
                     keys.consensus_every);
}

std::string noloco_text(const StepExchange& exchange) {
  const NoLoCoKeys& keys = exchange.exchange().noloco;
  const std::int64_t group = std::min<std::int64_t>(keys.group, exchange.ranks());
  return mixing_text(exchange, GossipGraph::of_groups(group, exchange.ranks(), 0),
                     fmt::format("the others of random groups of {}", group),
                     fmt::format("every {}", counted(keys.period, "step")), keys.consensus_every);
}

}  // namespace

const StrategyEntry gossip_entry{.family = "gossip",
                                 .make = make_gossip,
                                 .arenas = gossip_arenas,
                                 .step_text = gossip_text,
                                 .to_neighbours = true,
                                 .forms = {{.sets = {"exchange.gossip.consensus_every=8"}}}};
const StrategyEntry noloco_entry{
    .family = "gossip",
    .make = make_noloco,
    .arenas = noloco_arenas,
    .step_text = noloco_text,
    .title = [](const ExchangeConfig& config) { return fmt::format(" every {}", config.noloco.period); },
    .to_neighbours = true,
    .forms = {{.sets = {"exchange.noloco.period=4", "exchange.noloco.consensus_every=8"}},
              {.what = "groups of 3",
               .sets = {"exchange.noloco.period=3", "exchange.noloco.group=3", "exchange.noloco.outer_pull=1",
                        "exchange.noloco.consensus_every=8"}}}};

}  // namespace echelon::inline exchange
