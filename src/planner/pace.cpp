// SPDX-License-Identifier: Apache-2.0
#include "planner/pace.hpp"

#include <algorithm>
#include <deque>
#include <vector>

#include "base/hash_rng.hpp"
#include "exchange/gossip/topology.hpp"

namespace echelon::inline planner {
namespace {

constexpr std::int64_t kWarmup = 50, kRounds = 250, kDraws = 1'000'000;

// The number of rounds to draw: with many replicas the mean needs fewer rounds.
std::int64_t rounds_for(int replicas) {
  return std::max<std::int64_t>(kWarmup + 20, std::min(kWarmup + kRounds, kDraws / replicas));
}

// The factors of the steps of all replicas. Those of single steps (jitter) are drawn; those of a replica in the whole
// run (spread) are quantiles in the order of ranks.
class Draws {
 public:
  Draws(const Variation& variation, int replicas)
      : variation_(variation), steps_(Variation::lognormal(variation.jitter(), 0)), random_(1, "pace") {
    const Variation lasting = Variation::lognormal(0, variation.spread());
    for (int r = 0; r < replicas; ++r) lasting_.push_back(lasting.quantile((r + 0.5) / replicas));
  }
  double at(int replica, std::int64_t step) const {
    const double u = uniform(replica, step);
    const double factor = variation_.measured_steps() > 0 ? variation_.quantile(u) : steps_.quantile(u);
    return factor * lasting_[static_cast<std::size_t>(replica)];
  }

 private:
  double uniform(int replica, std::int64_t step) const {
    const double u = random_.at(static_cast<std::uint64_t>(replica)).uniform(static_cast<std::uint64_t>(step + 1));
    return std::clamp(u, 1e-12, 1 - 1e-12);
  }
  const Variation& variation_;
  Variation steps_;
  HashRng random_;
  std::vector<double> lasting_;
};

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

std::vector<double> drawn_factors(const Variation& variation, int replicas, int replica, int steps) {
  const Draws draws(variation, replicas);
  std::vector<double> factors;
  for (int t = 0; t < steps; ++t) factors.push_back(draws.at(replica, t));
  return factors;
}

double bounded_pace(const Variation& variation, int replicas, std::int64_t bound) {
  if (!variation.varies() || replicas == 1) return 1;
  const Draws draws(variation, replicas);
  const std::int64_t rounds = rounds_for(replicas) + 2 * std::min<std::int64_t>(bound, kRounds);
  std::vector<double> ends(static_cast<std::size_t>(replicas), 0);
  std::deque<double> all_ended;  // the times at which the last bound + 1 steps ended on all replicas
  double warm = 0;
  for (std::int64_t t = 0; t < rounds; ++t) {
    const bool held = static_cast<std::int64_t>(all_ended.size()) > bound;
    const double gate = held ? all_ended.front() : 0;
    if (held) all_ended.pop_front();
    double last = 0;
    for (int r = 0; r < replicas; ++r) {
      double& end = ends[static_cast<std::size_t>(r)];
      end = std::max(end, gate) + draws.at(r, t);
      last = std::max(last, end);
    }
    all_ended.push_back(last);
    if (t + 1 == rounds / 2) warm = mean_of(ends);
  }
  return std::max(1.0, (mean_of(ends) - warm) / static_cast<double>(rounds - rounds / 2));
}

double neighbour_pace(const Variation& variation, int replicas, const GossipKeys& keys) {
  if (!variation.varies() || replicas == 1) return 1;
  const Draws draws(variation, replicas);
  GossipKeys drawn = keys;
  if (keys.topology == GossipTopology::random) drawn.topology = GossipTopology::exponential;
  const GossipGraph graph(drawn, replicas, 1);
  const bool all = keys.topology == GossipTopology::complete;
  const std::int64_t rounds = rounds_for(replicas);
  std::vector<double> ends(static_cast<std::size_t>(replicas), 0), before;
  for (std::int64_t t = 0; t < rounds; ++t) {
    before = ends;
    for (int r = 0; r < replicas; ++r) before[static_cast<std::size_t>(r)] += draws.at(r, t);
    ends = before;
    const bool meets = all || (t + 1) % keys.consensus_every == 0;
    const double last = meets ? *std::max_element(before.begin(), before.end()) : 0;
    for (int r = 0; r < replicas; ++r) {
      double& end = ends[static_cast<std::size_t>(r)];
      if (meets)
        end = last;
      else
        for (const int from : graph.at(r, t).receive_from) end = std::max(end, before[static_cast<std::size_t>(from)]);
    }
  }
  return std::max(1.0, mean_of(ends) / static_cast<double>(rounds));
}

}  // namespace echelon::inline planner
