// SPDX-License-Identifier: Apache-2.0
// Sums over neighbours in any graph: values, messages, and progress with the smallest window.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/hash_rng.hpp"
#include "comm/collective/neighbours.hpp"
#include "exchange/gossip/topology.hpp"
#include "tests/support/plan_world.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

// links[i][j]: i sends to j.
using Links = std::vector<std::vector<bool>>;

// Sums whole numbers and counts every message.
void check_sums(const Links& links, std::int64_t elems, std::int64_t segment) {
  const std::size_t k = links.size(), n = static_cast<std::size_t>(elems);
  RankPlans plans;
  std::vector<std::vector<double>> data(k, std::vector<double>(n)), wanted;
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t e = 0; e < n; ++e) data[i][e] = static_cast<double>((i + 1) * 1000 + e);
  wanted = data;
  std::int64_t all = 0;
  std::vector<void*> buffers;
  for (std::size_t i = 0; i < k; ++i) {
    NeighbourRequest request;
    request.rank = static_cast<int>(i), request.ranks = static_cast<int>(k);
    request.elems = elems, request.segment_elems = segment;
    for (std::size_t j = 0; j < k; ++j) {
      if (links[i][j]) request.send_to.push_back(static_cast<int>(j)), ++all;
      if (links[j][i]) request.receive_from.push_back(static_cast<int>(j));
      for (std::size_t e = 0; e < n && links[j][i]; ++e) wanted[i][e] += data[j][e];
    }
    plans.push_back(make_neighbour_sum(request));
    buffers.push_back(data[i].data());
  }
  test::check_rules(plans, elems);
  const std::vector<WireCounters> counters = test::run_plans(plans, buffers, DType::f64, kLeastWindow);
  CHECK(data == wanted);
  std::int64_t messages = 0, bytes = 0;
  for (const WireCounters& of_rank : counters) {
    messages += static_cast<std::int64_t>(of_rank.messages_sent);
    bytes += static_cast<std::int64_t>(of_rank.bytes_sent);
  }
  const Price price = price_neighbour_sum(all, elems, segment);
  CHECK(messages == price.messages);
  CHECK(bytes == price.payload_elems * 8);
  if (elems <= segment) CHECK(longest_chain(plans) == price.steps);
}

Links links_of(const GossipGraph& graph, int k, std::int64_t round) {
  Links links(static_cast<std::size_t>(k), std::vector<bool>(static_cast<std::size_t>(k)));
  for (std::size_t i = 0; i < links.size(); ++i)
    for (const int j : graph.at(static_cast<int>(i), round).send_to) links[i][static_cast<std::size_t>(j)] = true;
  return links;
}

}  // namespace

TEST_CASE("neighbours of any graph are summed, in segments, with the smallest window", "[neighbours]") {
  const HashRng random(test::test_seed(), "graphs");
  for (std::uint64_t graph = 0; graph < 60; ++graph) {
    const HashRng of_graph = random.at(graph);
    const std::size_t k = 1 + of_graph.below(0, 9);
    const double density = of_graph.uniform(1);
    Links links(k, std::vector<bool>(k));
    for (std::size_t i = 0; i < k; ++i)
      for (std::size_t j = 0; j < k; ++j) links[i][j] = i != j && of_graph.uniform(2 + i * k + j) < density;
    for (const std::int64_t elems : {std::int64_t{0}, std::int64_t{1}, std::int64_t{23}}) {
      CAPTURE(graph, k, density, elems);
      check_sums(links, elems, 5);
      check_sums(links, elems, elems);
    }
  }
}

TEST_CASE("graphs of gossip: both ends know of each message, rows and columns of the mixing matrix", "[neighbours]") {
  for (const GossipTopology topology :
       {GossipTopology::ring, GossipTopology::exponential, GossipTopology::complete, GossipTopology::random})
    for (const bool push_sum : {true, false})
      for (int k = 1; k <= 9; ++k) {
        const GossipGraph graph({.topology = topology, .push_sum = push_sum}, k, 7);
        bool differs = false;
        for (std::int64_t round = 0; round < 12; ++round) {
          CAPTURE(static_cast<int>(topology), push_sum, k, round);
          const Links links = links_of(graph, k, round);
          std::int64_t all = 0;
          for (int i = 0; i < k; ++i) {
            const Neighbours neighbours = graph.at(i, round);
            std::vector<int> senders;
            for (int j = 0; j < k; ++j)
              if (links[static_cast<std::size_t>(j)][static_cast<std::size_t>(i)]) senders.push_back(j);
            std::vector<int> told = neighbours.receive_from;
            std::sort(told.begin(), told.end());
            CHECK(told == senders);
            CHECK(graph.share() * static_cast<double>(neighbours.send_to.size() + 1) == Approx(1));
            if (graph.balanced()) CHECK(told.size() == neighbours.send_to.size());
            all += static_cast<std::int64_t>(neighbours.send_to.size());
          }
          CHECK(all == graph.links());
          differs |= links != links_of(graph, k, 0);
          if (graph.rounds() > 0) CHECK(links == links_of(graph, k, round + graph.rounds()));
          check_sums(links, 7, 3);
        }
        CHECK(differs == (k > 2 && (topology == GossipTopology::exponential || topology == GossipTopology::random)));
      }
}

TEST_CASE("one-peer exponential graph: every replica hears of every other within ceil(log2 k) rounds", "[neighbours]") {
  for (int k = 2; k <= 17; ++k) {
    const GossipGraph graph({.topology = GossipTopology::exponential}, k, 0);
    std::vector<std::vector<bool>> heard(static_cast<std::size_t>(k), std::vector<bool>(static_cast<std::size_t>(k)));
    for (std::size_t i = 0; i < heard.size(); ++i) heard[i][i] = true;
    for (std::int64_t round = 0; round < graph.rounds(); ++round) {
      const auto before = heard;
      for (int i = 0; i < k; ++i)
        for (const int j : graph.at(i, round).receive_from)
          for (std::size_t of = 0; of < heard.size(); ++of)
            if (before[static_cast<std::size_t>(j)][of]) heard[static_cast<std::size_t>(i)][of] = true;
    }
    CAPTURE(k);
    for (const auto& of_replica : heard) CHECK(std::count(of_replica.begin(), of_replica.end(), true) == k);
  }
}

}  // namespace echelon
