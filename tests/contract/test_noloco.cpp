// SPDX-License-Identifier: Apache-2.0
// Compares strategy "noloco" with a plain loop over simulated workers, written from the formula, and with strategy
// "averaging" where both are the same; in double on `reference`.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "exchange/gossip/topology.hpp"
#include "tests/support/local_sgd.hpp"
#include "tests/support/one_model.hpp"
#include "tests/support/random.hpp"
#include "tests/support/replicas.hpp"

namespace echelon {
namespace {

using namespace test;

constexpr double kDouble = 1e-12;

using Weights = std::vector<double>;

ReplicaRun run_of(const NoLoCoKeys& keys, std::vector<std::int64_t> shares, int steps) {
  ReplicaRun run{.graph = small_cnn(), .shares = std::move(shares)};
  run.strategy = "noloco";
  run.steps = steps;
  const auto set = [&](const char* key, const std::string& value) {
    run.sets.push_back(std::string("exchange.noloco.") + key + "=" + value);
  };
  set("period", std::to_string(keys.period));
  set("group", std::to_string(keys.group));
  set("outer_rate", std::to_string(keys.outer_rate));
  set("outer_momentum", std::to_string(keys.outer_momentum));
  set("outer_pull", std::to_string(keys.outer_pull));
  set("consensus_every", std::to_string(keys.consensus_every));
  return run;
}

// Returns the groups of a round, each with its replicas.
std::set<std::vector<int>> groups_of(const NoLoCoKeys& keys, int replicas, std::uint64_t seed, std::int64_t round) {
  const GossipGraph graph = GossipGraph::of_groups(keys.group, replicas, seed);
  std::set<std::vector<int>> groups;
  for (int replica = 0; replica < replicas; ++replica) {
    std::vector<int> members = graph.at(replica, round).send_to;
    members.push_back(replica);
    std::sort(members.begin(), members.end());
    groups.insert(members);
  }
  return groups;
}

Weights mean_of(const std::vector<Weights>& all, const std::vector<int>& members) {
  Weights mean(all[0].size());
  for (const int i : members)
    mean = plus(mean, 1.0 / static_cast<double>(members.size()), all[static_cast<std::size_t>(i)]);
  return mean;
}

// v <- m v + o mean(x - a) + p (mean(a) - a);  a <- a + v;  x <- a, for each group; returns the mean of x at the end.
Weights simulate(const ReplicaRun& run, const NoLoCoKeys& keys) {
  LocalWorkers workers(run);
  const auto k = static_cast<std::size_t>(run.replicas());
  std::vector<Weights> a(k, workers.weights(0)), v(k, Weights(a[0].size()));
  std::vector<int> everybody;
  for (int i = 0; i < run.replicas(); ++i) everybody.push_back(i);
  const double p = keys.outer_pull > 0 ? keys.outer_pull : keys.outer_rate;
  for (int step = 0; step < run.steps; ++step) {
    workers.step(step, step_batch(run, step).weight() / run.replicas());
    if ((step + 1) % keys.period != 0) continue;
    std::vector<Weights> change;
    for (std::size_t i = 0; i < k; ++i) change.push_back(plus(workers.weights(static_cast<int>(i)), -1, a[i]));
    const std::vector<Weights> before = a;
    for (const std::vector<int>& members : groups_of(keys, run.replicas(), 0, (step + 1) / keys.period)) {
      const Weights mean_change = mean_of(change, members), mean_a = mean_of(before, members);
      for (const int member : members) {
        const auto i = static_cast<std::size_t>(member);
        for (std::size_t e = 0; e < a[i].size(); ++e)
          v[i][e] = keys.outer_momentum * v[i][e] + keys.outer_rate * mean_change[e] + p * (mean_a[e] - before[i][e]);
        a[i] = plus(before[i], 1, v[i]);
        workers.weights(member) = a[i];
      }
    }
  }
  std::vector<Weights> x;
  for (int i = 0; i < run.replicas(); ++i) x.push_back(workers.weights(i));
  return mean_of(x, everybody);
}

}  // namespace

TEST_CASE("noloco has the weights of simulated workers", "[contract][noloco]") {
  const std::vector<NoLoCoKeys> forms = {
      {.period = 2, .consensus_every = 4},
      {.period = 3, .group = 3, .outer_rate = 0.5, .outer_momentum = 0.25, .outer_pull = 1, .consensus_every = 5},
      {.period = 1, .group = 2, .outer_rate = 1, .outer_momentum = 0.125, .outer_pull = 0.5, .consensus_every = 3}};
  for (const NoLoCoKeys& keys : forms)
    for (const std::vector<std::int64_t>& shares :
         {std::vector<std::int64_t>{3}, {2, 2}, {2, 1, 3}, {1, 1, 1, 1, 1}, {2, 1, 1, 2, 1, 3, 1}}) {
      CAPTURE(keys.period, keys.group, keys.outer_pull, shares.size());
      const ReplicaRun run = run_of(keys, shares, 11);
      const ReplicaResult result = train_replicas(run);
      check_one_model(result);
      CHECK(tensor_distance(run.graph.parameters(), result.weights, simulate(run, keys)) <= kDouble);
    }
}

TEST_CASE("noloco in one group with outer rate 1 and no momentum is averaging", "[contract][noloco]") {
  for (const int period : {1, 3, 4})
    for (const double pull : {0.0, 0.5}) {
      CAPTURE(period, pull);
      ReplicaRun run = run_of({.period = period, .group = 5, .outer_rate = 1, .outer_momentum = 0, .outer_pull = pull},
                              {2, 2, 2, 2, 2}, 12);
      const Weights own = train_replicas(run).weights;
      run.sets.clear();
      run.strategy = "averaging", run.averaging.period = period;
      CHECK(tensor_distance(run.graph.parameters(), own, train_replicas(run).weights) <= kDouble);
    }
}

TEST_CASE("statistics of batch norm are averaged in noloco and take no outer step", "[contract][noloco]") {
  for (const double pull : {0.0, 1.0}) {
    CAPTURE(pull);
    ReplicaRun run =
        run_of({.period = 2, .group = 3, .outer_rate = 0.5, .outer_momentum = 0.5, .outer_pull = pull}, {2, 2, 2}, 4);
    run.graph = small_batch_norm_net();
    run.learning_rate = 0;
    const Weights own = train_replicas(run).weights;
    run.sets.clear();
    run.strategy = "averaging", run.averaging.period = 2;
    CHECK(tensor_distance(run.graph.parameters(), own, train_replicas(run).weights) <= kDouble);
  }
}

TEST_CASE("a run of noloco that is resumed at a meeting has the same bits", "[contract][noloco]") {
  for (const std::int64_t meets : {3, 4})
    for (const double pull : {0.0, 0.5}) {
      CAPTURE(meets, pull);
      ReplicaRun run = run_of({.period = 2, .outer_pull = pull, .consensus_every = meets}, {2, 1, 3}, 14);
      const ReplicaResult whole = train_replicas(run);
      run.resume_at = static_cast<int>(3 * meets);
      CHECK(train_replicas(run).weights == whole.weights);
    }
}

TEST_CASE("bytes of noloco are those of its formula", "[contract][noloco]") {
  for (const int group : {2, 3, 9})
    for (int k = 1; k <= 5; ++k) {
      CAPTURE(group, k);
      const ReplicaRun run = run_of({.period = 2, .group = group, .consensus_every = 3},
                                    std::vector<std::int64_t>(static_cast<std::size_t>(k), 1), 8);
      const auto g = static_cast<double>(run.graph.parameters().elems() * 8);
      const int n = std::min(group, k), left = k % n;
      const int links = (k - left) * (n - 1) + left * std::max(left - 1, 0);
      const ReplicaResult result = train_replicas(run);
      CHECK(result.sent_bytes == Approx(4 * links * g + 3 * 2 * (k - 1) * g).epsilon(1e-12));
      CHECK(result.sent_bytes == Approx(result.formula_bytes * run.steps).epsilon(1e-12));
    }
}

// The bound of config/strategies/noloco.hpp, on one weight of many replicas that do not train.
TEST_CASE("slow weights drift apart beyond the bound of the pull, and not below it", "[contract][noloco]") {
  constexpr int kReplicas = 256;
  for (const int group : {2, 4})
    for (const double m : {0.0, 0.5, 0.9})
      for (const double part : {0.8, 1.25}) {
        const double bound = 2 * (1 - m * m) / (1 - m + 2 * m / group);
        std::vector<double> a(kReplicas), v(kReplicas);
        for (std::size_t i = 0; i < a.size(); ++i) a[i] = i % 2 == 0 ? 1 : -1;
        const auto square = [&] { return std::inner_product(a.begin(), a.end(), a.begin(), 0.0); };
        double early = 0;
        for (int round = 0; round < 120; ++round) {
          for (const std::vector<int>& members : groups_of({.group = group}, kReplicas, test_seed(), round)) {
            double mean = 0;
            for (const int i : members) mean += a[static_cast<std::size_t>(i)] / static_cast<double>(members.size());
            for (const int member : members) {
              const auto i = static_cast<std::size_t>(member);
              v[i] = m * v[i] + part * bound * (mean - a[i]);
              a[i] += v[i];
            }
          }
          if (round == 20) early = square();
        }
        CAPTURE(group, m, part, early, square());
        CHECK((square() > early) == (part > 1));
      }
}

TEST_CASE("random groups divide the replicas, and each pair meets as often as any other", "[contract][noloco]") {
  for (const int k : {1, 2, 3, 5, 8})
    for (const int group : {2, 3, 8}) {
      CAPTURE(k, group);
      const int rounds = 2000;
      std::vector<int> together(static_cast<std::size_t>(k));  // with replica 0
      for (int round = 0; round < rounds; ++round) {
        const auto groups = groups_of({.group = group}, k, test_seed(), round);
        std::size_t members = 0, small = 0;
        for (const std::vector<int>& one : groups) {
          members += one.size();
          small += static_cast<int>(one.size()) < std::min(group, k) ? 1 : 0;
          if (one.front() != 0) continue;
          for (const int other : one) ++together[static_cast<std::size_t>(other)];
        }
        REQUIRE(members == static_cast<std::size_t>(k));
        REQUIRE(small == (k % std::min(group, k) > 0 ? 1 : 0));
      }
      CHECK(together[0] == rounds);
      const int n = std::min(group, k), left = k % n;
      const double chance = k == 1 ? 0 : ((k - left) * (n - 1.0) + left * std::max(left - 1.0, 0.0)) / (k * (k - 1.0));
      for (int other = 1; other < k; ++other)
        CHECK(together[static_cast<std::size_t>(other)] ==
              Approx(chance * rounds).margin(6 * std::sqrt(rounds * chance * (1 - chance))));
    }
}

}  // namespace echelon
