// SPDX-License-Identifier: Apache-2.0
// Compares strategy "gossip" with synchronous training where both are the same, and with a plain loop over simulated
// workers and a mixing matrix everywhere else; in double on `reference`.
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "comm/collective/algorithms.hpp"
#include "exchange/gossip/neighbour_sums.hpp"
#include "model/build.hpp"
#include "model/zoo/zoo.hpp"
#include "tests/support/local_sgd.hpp"
#include "tests/support/one_model.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/small_models.hpp"

namespace echelon {
namespace {

using namespace test;

constexpr double kDouble = 1e-8;
constexpr GossipTopology kRing = GossipTopology::ring, kExponential = GossipTopology::exponential,
                         kComplete = GossipTopology::complete, kRandom = GossipTopology::random;

struct Form {
  GossipTopology topology;
  bool push_sum;
};
// All forms that the config accepts.
const std::vector<Form> kForms = {{kRing, false},     {kRing, true},     {kExponential, true},
                                  {kComplete, false}, {kComplete, true}, {kRandom, true}};

ReplicaRun run_of(std::vector<std::int64_t> shares) {
  ReplicaRun run{.graph = small_cnn(), .shares = std::move(shares)};
  run.strategy = "gossip";
  return run;
}

using Matrix = std::vector<std::vector<double>>;

// Written from the definitions: column j tells where replica j's values go.
Matrix mixing(const ReplicaRun& run, int round) {
  const int k = run.replicas();
  const GossipKeys& keys = run.gossip;
  Matrix p(static_cast<std::size_t>(k), std::vector<double>(static_cast<std::size_t>(k)));
  const auto at = [&](int to, int from) -> double& {
    return p[static_cast<std::size_t>((to + k) % k)][static_cast<std::size_t>(from)];
  };
  int rounds = 0;
  while ((1 << rounds) < k) ++rounds;
  for (int j = 0; j < k; ++j) {
    if (k == 1) at(0, 0) = 1;
    if (k == 1) continue;
    if (keys.topology == kComplete) {
      for (int i = 0; i < k; ++i) at(i, j) = 1.0 / k;
    } else if (keys.topology == kRing && !keys.push_sum && k > 2) {
      at(j - 1, j) = at(j, j) = at(j + 1, j) = 1.0 / 3;
    } else {
      const int to = keys.topology == kRing          ? j + 1
                     : keys.topology == kExponential ? j + (1 << (round % rounds))
                                                     : GossipGraph(keys, k, 0).at(j, round).send_to.front();
      at(j, j) += 0.5;
      at(to, j) += 0.5;
    }
  }
  return p;
}

// The mean of the workers that meet after the last step, and the distance of the first worker from it.
struct Simulated {
  std::vector<double> mean;
  double drift = 0;
  double largest_weight = 1;  // largest weight of push-sum
};

Simulated simulate(const ReplicaRun& run) {
  LocalWorkers workers(run);
  const auto k = static_cast<std::size_t>(run.replicas());
  Simulated result;
  std::vector<double> weight(k, 1.0);
  for (int step = 0; step < run.steps; ++step) {
    std::vector<std::vector<double>> before, change;
    for (int w = 0; w < workers.size(); ++w) before.push_back(workers.weights(w));
    workers.step(step, step_batch(run, step).weight() / run.replicas());
    for (int w = 0; w < workers.size(); ++w)
      change.push_back(plus(workers.weights(w), -1, before[static_cast<std::size_t>(w)]));
    const Matrix p = mixing(run, step);
    std::vector<double> mixed_weight(k);
    for (std::size_t i = 0; i < k; ++i) {
      std::vector<double> x(before[0].size());
      for (std::size_t j = 0; j < k; ++j) {
        x = plus(x, p[i][j] * weight[j], before[j]);
        if (run.gossip.order == MixingOrder::mix_after) x = plus(x, p[i][j], change[j]);
        mixed_weight[i] += p[i][j] * weight[j];
      }
      if (run.gossip.order == MixingOrder::mix_before) x = plus(x, 1, change[i]);
      for (double& value : x) value /= mixed_weight[i];
      workers.weights(static_cast<int>(i)) = x;
      result.largest_weight = std::max(result.largest_weight, mixed_weight[i]);
    }
    weight = mixed_weight;
    if ((step + 1) % run.gossip.consensus_every != 0 && step + 1 != run.steps) continue;
    result.mean.assign(before[0].size(), 0.0);
    for (std::size_t i = 0; i < k; ++i)
      result.mean = plus(result.mean, weight[i] / static_cast<double>(k), workers.weights(static_cast<int>(i)));
    double apart = 0, all = 0;
    for (std::size_t e = 0; e < result.mean.size(); ++e) {
      apart += std::pow(workers.weights(0)[e] - result.mean[e], 2);
      all += result.mean[e] * result.mean[e];
    }
    result.drift = std::sqrt(apart / all);
    for (std::size_t i = 0; i < k; ++i) {
      std::vector<double>& z = workers.weights(static_cast<int>(i));
      z = plus(result.mean, weight[i], plus(z, -1, result.mean));
      weight[i] = 1;
    }
  }
  return result;
}

int meetings(const ReplicaRun& run) {
  const auto period = static_cast<int>(run.gossip.consensus_every);
  return run.steps / period + (run.steps % period > 0 ? 1 : 0);
}

}  // namespace

TEST_CASE("gossip on a complete graph after every update under plain SGD is synchronous training",
          "[contract][gossip]") {
  for (const NamedGraph& model : small_models())
    for (const std::vector<std::int64_t>& shares : {std::vector<std::int64_t>{4}, {2, 2}, {1, 3, 2}, {2, 2, 2, 2}})
      for (const bool holes : {false, true}) {
        CAPTURE(model.name, shares.size(), holes);
        ReplicaRun run{.graph = model.graph, .shares = shares};
        run.momentum = 0, run.holes = holes, run.steps = 8;
        const ReplicaResult synchronous = train_replicas(run);
        run.strategy = "gossip";
        run.gossip = {.topology = kComplete, .push_sum = holes, .consensus_every = 3};
        const ReplicaResult result = train_replicas(run);
        check_one_model(result);
        CHECK(tensor_distance(run.graph.parameters(), result.weights, synchronous.weights) <= kDouble);
      }
}

TEST_CASE("gossip has the weights and the drift of simulated workers", "[contract][gossip]") {
  double largest_weight = 1;
  for (const Form form : kForms)
    for (const MixingOrder order : {MixingOrder::mix_after, MixingOrder::mix_before})
      for (const std::vector<std::int64_t>& shares : {std::vector<std::int64_t>{2, 2}, {2, 1, 3}, {1, 1, 1, 1, 1}}) {
        CAPTURE(static_cast<int>(form.topology), form.push_sum, static_cast<int>(order), shares.size());
        ReplicaRun run = run_of(shares);
        run.steps = 7;
        run.gossip = {form.topology, form.push_sum, order, 4};
        const Simulated wanted = simulate(run);
        const ReplicaResult result = train_replicas(run);
        check_one_model(result);
        CHECK(tensor_distance(run.graph.parameters(), result.weights, wanted.mean) <= kDouble);
        CHECK(result.drift == Approx(wanted.drift).epsilon(1e-6).margin(1e-12));
        largest_weight = std::max(largest_weight, wanted.largest_weight);
      }
  CHECK(largest_weight > 1.2);
}

TEST_CASE("a run of gossip that is resumed at a meeting has the same bits", "[contract][gossip]") {
  for (const Form form : kForms)
    for (const MixingOrder order : {MixingOrder::mix_after, MixingOrder::mix_before}) {
      CAPTURE(static_cast<int>(form.topology), form.push_sum, static_cast<int>(order));
      ReplicaRun run = run_of({2, 1, 3});
      run.steps = 8;
      run.gossip = {form.topology, form.push_sum, order, 3};
      const ReplicaResult whole = train_replicas(run);
      run.resume_at = 6;
      CHECK(train_replicas(run).weights == whole.weights);
    }
}

TEST_CASE("one replica that gossips is one replica, by every rule", "[contract][gossip]") {
  for (const std::string rule : {"sgd", "adam", "lars", "lamb", "rmsprop"})
    for (const double clip_norm : {0.0, 0.1})
      for (const MixingOrder order : {MixingOrder::mix_after, MixingOrder::mix_before}) {
        CAPTURE(rule, clip_norm, static_cast<int>(order));
        ReplicaRun run{.graph = small_cnn(), .shares = {4}};
        run.rule = rule, run.clip_norm = clip_norm, run.steps = 6;
        const ReplicaResult alone = train_replicas(run);
        run.strategy = "gossip";
        run.gossip = {.order = order, .consensus_every = 4};
        const ReplicaResult result = train_replicas(run);
        CHECK(result.weights == alone.weights);
        CHECK(result.sent_bytes == 0);
        CHECK(result.formula_bytes == 0);
      }
}

// In each step a replica sends its weights to a number of others that does not depend on k (except with `complete`); a
// meeting adds an all-reduce.
TEST_CASE("bytes of gossip are those of its formula", "[contract][gossip]") {
  for (const Form form : kForms)
    for (const MixingOrder order : {MixingOrder::mix_after, MixingOrder::mix_before})
      for (int k = 1; k <= 5; ++k) {
        CAPTURE(static_cast<int>(form.topology), form.push_sum, static_cast<int>(order), k);
        ReplicaRun run = run_of(std::vector<std::int64_t>(static_cast<std::size_t>(k), 1));
        run.steps = 5;
        run.gossip = {form.topology, form.push_sum, order, 2};
        const auto g = static_cast<double>(run.graph.parameters().elems() * 8);
        const int receivers = form.topology == kComplete ? k - 1 : std::min(form.push_sum ? 1 : 2, k - 1);
        const double of_weights = form.topology == kRandom ? 8.0 * k * receivers : 0;
        const ReplicaResult result = train_replicas(run);
        CHECK(result.sent_bytes ==
              Approx(run.steps * (k * receivers * g + of_weights) + meetings(run) * 2 * (k - 1) * g).epsilon(1e-12));
        CHECK(result.sent_bytes == Approx(result.formula_bytes * run.steps).epsilon(1e-12));
      }
}

TEST_CASE("the mean of gossip is formed by every algorithm; weights are staged from a device of its own memory",
          "[contract][gossip]") {
  for (const MixingOrder order : {MixingOrder::mix_after, MixingOrder::mix_before}) {
    ReplicaRun run = run_of({2, 2, 2});
    run.steps = 5;
    run.gossip = {kRandom, true, order, 2};
    const std::vector<double> ring = train_replicas(run).weights;
    for (const std::string& algorithm : allreduce_names()) {
      CAPTURE(algorithm);
      run.algorithm = algorithm;
      if (algorithm == "mpi") continue;  // the library sends its own messages
      const ReplicaResult result = train_replicas(run);
      check_one_model(result);
      CHECK(tensor_distance(run.graph.parameters(), result.weights, ring) <= kDouble);
    }
    run.algorithm = "ring", run.device = "discrete";
    CHECK(train_replicas(run).weights == ring);
  }
}

TEST_CASE("replicas stay apart between meetings, and a denser graph keeps them nearer", "[contract][gossip]") {
  ReplicaRun run = run_of({1, 1, 1, 1, 1});
  run.steps = 12;
  run.gossip = {.topology = kComplete, .push_sum = false};
  const double complete = train_replicas(run).drift;
  run.gossip.topology = kRing;
  const double ring = train_replicas(run).drift;
  run.strategy = "averaging";
  run.averaging.period = 1000;
  const double apart = train_replicas(run).drift;
  CHECK(complete < 1e-12);
  CHECK(ring > 1e-6);
  CHECK(apart > 2 * ring);
}

// On a ring of one-way links, replicas 0 and 1 neither hear of 3, which stands still, nor send to it. The weights, more
// than 32,768 values in double, take two messages.
TEST_CASE("a replica waits for its neighbours of the round alone", "[contract][gossip]") {
  std::atomic<int> done = 0, cut = 0;
  run_ranks(5, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    ReplicaRun run = run_of({1, 1, 1, 1, 1});
    const SampleForm form{.shape = {1, 8, 8}, .classes = 10};
    run.graph = build_layers(zoo_layers("cnn_32_64", form), form);
    run.gossip = {.topology = kRing, .push_sum = true};
    Trainer trainer(run.graph, 1);
    const OptimiserConfig rule = optimiser_of(run);
    Optimiser optimiser(rule, trainer.arenas());
    StepAccount account(optimiser);
    NeighbourSums sums({trainer.arenas(), optimiser, engine}, {{0, trainer.arenas().elems()}},
                       trainer.arenas().weights_at(0), GossipGraph(run.gossip, 5, 1));
    if (sums.channels() == 2 + 1) ++cut;
    double weight = 1;
    while (engine.rank() == 3 && done < 2) std::this_thread::yield();
    sums.submit(0, weight);
    sums.settle(account);
    ++done;
  });
  CHECK(done == 5);
  CHECK(cut == 5);
}

}  // namespace echelon
