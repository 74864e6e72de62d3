// SPDX-License-Identifier: Apache-2.0
// Costs of control for one of k ranks: counts of messages, links, connections and bytes, compared with formulas.
// `echelon bench control` measures the times.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>

#include "base/check.hpp"
#include "cli/control_bench.hpp"
#include "cli/plan_bench.hpp"
#include "comm/group.hpp"
#include "train/control/calls.hpp"
#include "train/control/words.hpp"

namespace echelon {
namespace {

using cli::ControlCost;

const ControlCost& of(const std::vector<ControlCost>& costs, const std::string& part) {
  const auto at =
      std::find_if(costs.begin(), costs.end(), [&](const auto& cost) { return cost.part.starts_with(part); });
  ECHELON_CHECK(at != costs.end(), "no part {}", part);
  return *at;
}

int ceil_log2(int k) { return static_cast<int>(std::bit_width(static_cast<unsigned>(k - 1))); }
// Returns the links between rank 0 and the farthest rank in a binomial tree: the most bits set in a rank's number.
int depth(int k) {
  int most = 0;
  for (int rank = 0; rank < k; ++rank) most = std::max(most, std::popcount(static_cast<unsigned>(rank)));
  return most;
}

}  // namespace

TEST_CASE("control messages of a rank grow as log2 k", "[control][large_k]") {
  for (const int k : {3, 64, 512}) {
    CAPTURE(k);
    const std::vector<ControlCost> costs = cli::measure_machines(k, 4);
    const int log_k = ceil_log2(k);

    const ControlCost& words = of(costs, "control words");
    CHECK(words.sent.busiest == log_k);
    CHECK(words.received.busiest == log_k);
    CHECK(words.sent.mean == Approx(2.0 * (k - 1) / k));
    CHECK(words.sent_bytes.mean == Approx(2.0 * (k - 1) / k * sizeof(ControlSum)));
    CHECK(words.links == 2 * depth(k));
    CHECK(words.peers.busiest == log_k);
    CHECK(words.held_bytes.mean < 4000);
    CHECK(words.held_bytes.busiest < 4000 + 160 * k);  // rank 0 keeps the times of all ranks

    // A rank's times pass over as many links to rank 0 as its number has bits set.
    const ControlCost& times = of(costs, "control words with times");
    CHECK(times.sent.busiest == log_k);
    CHECK(times.sent_bytes.busiest < static_cast<double>(log_k * sizeof(ControlSum) + k / 2 * sizeof(RankStep)) + 1);

    // A rank sends at most two reports a step to its parent, whatever arrives from its children.
    const ControlCost& reports = of(costs, "reports of steps");
    CHECK(reports.sent.busiest <= 2.01);
    CHECK(reports.received.busiest <= 2.01 * log_k);
    CHECK(reports.received.busiest >= log_k);
    CHECK(reports.links == 2 * depth(k));
    CHECK(reports.peers.busiest <= log_k);
    CHECK(reports.held_bytes.busiest < 1500 + 500 * log_k);

    const ControlCost& news = of(costs, "news of steps");
    CHECK(news.sent.busiest <= 2 * log_k);
    CHECK(news.received.busiest <= 2 * log_k);
    CHECK(news.links == 2 * depth(k));

    const ControlCost& beats = of(costs, "beats");
    CHECK(beats.sent.busiest == 1);
    CHECK(beats.received.busiest == 1);
    CHECK(beats.peers.busiest == 2);
    CHECK(beats.held_bytes.busiest < 2000 + 16 * k);  // a host and a fate per rank

    // Rank 0 deals all batches.
    const ControlCost& draws = of(costs, "batches drawn");
    CHECK(draws.sent.busiest == k - 1);
    CHECK(draws.sent.mean == Approx(2.0 * (k - 1) / k));
    CHECK(draws.links == 2);
    CHECK(draws.held_bytes.busiest < 4000 + 160 * k);
  }
}

TEST_CASE("collectives of control have at most 2 log2 k messages a rank", "[control][large_k]") {
  for (const int k : {3, 64, 512}) {
    CAPTURE(k);
    const std::vector<ControlCost> costs = cli::measure_collectives(k, 1);
    const int log_k = ceil_log2(k);
    for (const ControlCost& cost : costs) {
      CAPTURE(cost.part);
      CHECK(cost.sent.busiest <= 2 * log_k);
      CHECK(cost.links <= 2 * log_k + 2);
      CHECK(cost.peers.busiest <= log_k + 1);
    }
    CHECK(of(costs, "errors").sent_bytes.busiest == 8 * log_k);
    CHECK(of(costs, "errors").sent_bytes.mean == Approx(8 * 2.0 * (k - 1) / k));
    CHECK(of(costs, "agreement").sent_bytes.busiest == 128 * log_k);
    CHECK(of(costs, "batch norm").sent_bytes.busiest <= 2 * 4096 * 8);
    CHECK(of(costs, "evaluation").sent_bytes.busiest <= 24 * k * (3 * k <= Group::kInTree ? log_k : 2));
    CHECK(of(costs, "broadcast").sent_bytes.busiest == 1024 * log_k);
    CHECK(of(costs, "all-gather").sent_bytes.busiest <= 8.0 * k * log_k);
  }
}

TEST_CASE("plans of 4,096 ranks are small", "[control][large_k]") {
  constexpr int kRanks = 4096;
  constexpr std::int64_t kElems = std::int64_t{1} << 20;
  std::vector<int> hosts;
  for (int rank = 0; rank < kRanks; ++rank) hosts.push_back(rank / 8);
  for (const std::string& algorithm : cli::planned_algorithms()) {
    const cli::PlanCost plan =
        cli::measure_plans(algorithm, {.ranks = kRanks, .elems = kElems, .hosts = hosts}, {kElems}, 1);
    CAPTURE(algorithm, plan.steps, plan.held_bytes);
    CHECK(plan.steps > 0);
    // A plan is a list of steps where their number grows as log2 k, and is computed on demand otherwise: `server` holds
    // 20 bytes per rank, the other algorithms with that many steps hold nothing.
    const bool computed = algorithm == "naive" || algorithm == "ring" || algorithm == "direct";
    CHECK(plan.held_bytes < (computed ? 256 : algorithm == "hierarchical" ? 448 << 10 : 112 << 10));
  }
}

}  // namespace echelon
