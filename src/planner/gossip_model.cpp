// SPDX-License-Identifier: Apache-2.0
// Strategies gossip and noloco: a replica waits for its neighbours only, and for all when the mean is formed.
#include <algorithm>

#include "comm/collective/neighbours.hpp"
#include "exchange/gossip/topology.hpp"
#include "planner/pace.hpp"
#include "planner/strategy_models.hpp"

namespace echelon::inline planner {
namespace {

constexpr double kMostLinks = 20'000;

// Returns the lengths of the messages to one receiver.
std::vector<std::int64_t> messages_of(const Workload& work) {
  const std::int64_t most = neighbour_message_elems(work.elem_bytes);
  std::vector<std::int64_t> lengths;
  for (const GradientBucket& bucket : work.buckets)
    for (std::int64_t begin = 0; begin < bucket.elems; begin += most)
      lengths.push_back(std::min(most, bucket.elems - begin));
  return lengths;
}

// Simulates the plans of all replicas in one round on virtual time.
double round_s(const StrategySetting& setting, const GossipGraph& graph, int replicas, std::int64_t round) {
  std::vector<TimedPlans> messages;
  for (const std::int64_t elems : messages_of(setting.work)) {
    TimedPlans& all = messages.emplace_back();
    for (int rank = 0; rank < replicas; ++rank) {
      const Neighbours neighbours = graph.at(rank, round);
      all.plans.push_back(make_neighbour_sum({.rank = rank,
                                              .ranks = replicas,
                                              .send_to = neighbours.send_to,
                                              .receive_from = neighbours.receive_from,
                                              .elems = elems,
                                              .segment_elems = elems}));
    }
  }
  const std::vector<int> hosts =
      RankPlacement{.ranks = replicas, .ranks_a_host = setting.pricer.ranks_a_host()}.hosts_of_ranks();
  const std::vector<double> ends_s = plan_times_s(messages, hosts, setting.network(), setting.work.elem_bytes);
  return *std::max_element(ends_s.begin(), ends_s.end());
}

// The number of messages of a round, each of all weights, that pass the busiest card one way: of a host, and of a rank
// inside its host.
struct Busiest {
  double between = 0, inside = 0;
};

Busiest busiest_of(const GossipGraph& graph, int replicas, int ranks_a_host, std::int64_t round) {
  struct Count {
    int out = 0, in = 0;
  };
  std::vector<Count> hosts(static_cast<std::size_t>((replicas - 1) / ranks_a_host + 1));
  std::vector<Count> ranks(static_cast<std::size_t>(replicas));
  for (int rank = 0; rank < replicas; ++rank)
    for (const int to : graph.at(rank, round).send_to) {
      const bool inside = rank / ranks_a_host == to / ranks_a_host;
      const auto from_at = static_cast<std::size_t>(inside ? rank : rank / ranks_a_host);
      const auto to_at = static_cast<std::size_t>(inside ? to : to / ranks_a_host);
      std::vector<Count>& cards = inside ? ranks : hosts;
      ++cards[from_at].out, ++cards[to_at].in;
    }
  Busiest busiest;
  for (const Count& count : hosts) busiest.between = std::max<double>(busiest.between, std::max(count.out, count.in));
  for (const Count& count : ranks) busiest.inside = std::max<double>(busiest.inside, std::max(count.out, count.in));
  return busiest;
}

std::int64_t rounds_of(const GossipGraph& graph) {
  constexpr int kDrawnRounds = 8;  // for random graphs
  return graph.rounds() > 0 ? graph.rounds() : kDrawnRounds;
}

// Seconds of a round whose busiest cards transfer these messages one after another.
double busiest_s(const StrategySetting& setting, const Busiest& busiest) {
  const auto cuts = static_cast<double>(messages_of(setting.work).size());
  const auto wire_s = [&](const Link& link, double messages) {
    const double card_s = messages * (setting.work.bytes() / link.bytes_per_s + cuts * link.latency_s / 2);
    return messages > 0 ? card_s + link.latency_s / 2 : 0;
  };
  return std::max(wire_s(setting.network().between, busiest.between),
                  wire_s(setting.network().inside, busiest.inside)) +
         setting.work.bytes() / cuts / setting.network().add_bytes_per_s;  // adds the last message
}

// Returns the mean of `seconds(round)` over the rounds of a graph.
template <class Seconds>
double over_rounds(const GossipGraph& graph, const Seconds& seconds) {
  const std::int64_t rounds = rounds_of(graph);
  double sum_s = 0;
  for (std::int64_t round = 0; round < rounds; ++round) sum_s += seconds(round);
  return sum_s / static_cast<double>(rounds);
}

double formula_s(const StrategySetting& setting, const GossipGraph& graph, int replicas) {
  const int g = std::min(setting.pricer.ranks_a_host(), replicas);
  return over_rounds(graph,
                     [&](std::int64_t round) { return busiest_s(setting, busiest_of(graph, replicas, g, round)); });
}

double simulated_s(const StrategySetting& setting, const GossipGraph& graph, int replicas) {
  return over_rounds(graph, [&](std::int64_t round) { return round_s(setting, graph, replicas, round); });
}

bool can_simulate(const StrategySetting& setting, const GossipGraph& graph) {
  return static_cast<double>(graph.links() * rounds_of(graph)) *
             static_cast<double>(messages_of(setting.work).size()) <=
         kMostLinks;
}

}  // namespace

double mixing_formula_s(const StrategySetting& setting, int replicas) {
  const int g = std::min(setting.pricer.ranks_a_host(), replicas);
  if (setting.exchange().gossip.topology == GossipTopology::complete)
    return busiest_s(setting, {.between = 1.0 * g * (replicas - g), .inside = g - 1.0});
  return formula_s(setting, GossipGraph(setting.exchange().gossip, replicas, 1), replicas);
}

bool can_simulate_mixing(const StrategySetting& setting, int replicas) {
  return can_simulate(setting, GossipGraph(setting.exchange().gossip, replicas, 1));
}

double simulated_mixing_s(const StrategySetting& setting, int replicas) {
  return simulated_s(setting, GossipGraph(setting.exchange().gossip, replicas, 1), replicas);
}

namespace {

// On a complete graph messages of several buckets wait for each other's receivers; the ratio of simulation to formula
// for few replicas accounts for this.
double mixing_s_of(const StrategySetting& setting, int replicas) {
  if (can_simulate_mixing(setting, replicas)) return simulated_mixing_s(setting, replicas);
  setting.pricer.note_formula(setting.exchange().gossip.topology == GossipTopology::complete ? 0.15 : 0.02);
  const double closed_s = mixing_formula_s(setting, replicas);
  const int few = std::min(replicas, 8 * setting.pricer.ranks_a_host());
  if (setting.exchange().gossip.topology != GossipTopology::complete || !can_simulate_mixing(setting, few))
    return closed_s;
  return closed_s * simulated_mixing_s(setting, few) / mixing_formula_s(setting, few);
}

// Groups of many replicas have nearly all their messages between hosts.
double group_round_s(const StrategySetting& setting, int replicas) {
  const auto group = std::min<std::int64_t>(setting.exchange().noloco.group, replicas);
  const GossipGraph graph = GossipGraph::of_groups(group, replicas, 1);
  if (can_simulate(setting, graph)) return simulated_s(setting, graph, replicas);
  setting.pricer.note_formula(0.02);
  constexpr int kManyReplicas = 1000;
  if (replicas <= kManyReplicas) return formula_s(setting, graph, replicas);
  const int g = std::min(setting.pricer.ranks_a_host(), replicas);
  const auto messages = static_cast<double>(group - 1);
  return busiest_s(setting, g < replicas ? Busiest{.between = g * messages} : Busiest{.inside = messages});
}

}  // namespace

double gossip_step_s(const StrategySetting& setting, int replicas) {
  const GossipKeys& keys = setting.exchange().gossip;
  const double mixing_s = mixing_s_of(setting, replicas);
  const double pace = neighbour_pace(setting.step.variation, replicas, keys);
  const double compute_s = setting.step.total_s() * pace;
  const double mean_s = whole_allreduce_s(setting, replicas, 1) / static_cast<double>(keys.consensus_every);
  const double beside_s = keys.order == MixingOrder::mix_before ? std::min(compute_s, mixing_s) : 0;
  return compute_s + mixing_s - setting.step.overlap * beside_s + mean_s;
}

// Delays spread from group to group until all wait for the slowest.
double noloco_step_s(const StrategySetting& setting, int replicas) {
  const NoLoCoKeys& keys = setting.exchange().noloco;
  const auto period = static_cast<double>(keys.period);
  return setting.step.total_s() * setting.step.variation.largest_of(replicas, period) +
         group_round_s(setting, replicas) / period +
         whole_allreduce_s(setting, replicas, 1) / static_cast<double>(keys.consensus_every);
}

}  // namespace echelon::inline planner
