// SPDX-License-Identifier: Apache-2.0
// Compares the strategies that exchange weights, "averaging" and "elastic", with synchronous training where they are
// the same, and with a plain loop over simulated workers everywhere else; in double on `reference`.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "comm/collective/algorithms.hpp"
#include "tests/support/local_sgd.hpp"
#include "tests/support/one_model.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/small_models.hpp"

namespace echelon {
namespace {

using namespace test;

constexpr double kDouble = 1e-8;

ReplicaRun run_of(const std::string& strategy, std::vector<std::int64_t> shares) {
  ReplicaRun run{.graph = small_cnn(), .shares = std::move(shares)};
  run.strategy = strategy;
  return run;
}

// Trains by the strategy with ranks as threads; checks the result's weights, and that all replicas have the same bits.
void check_weights(const ReplicaRun& run, const std::vector<double>& wanted) {
  const ReplicaResult result = train_replicas(run);
  check_one_model(result);
  CHECK(tensor_distance(run.graph.parameters(), result.weights, wanted) <= kDouble);
  CHECK(result.sent_bytes == Approx(result.formula_bytes * run.steps).epsilon(1e-12));
}

// Tells whether step t (from 0) ends with an exchange.
bool exchanges(const ReplicaRun& run, std::int64_t period, int step) {
  return (step + 1) % period == 0 || step + 1 == run.steps;
}

}  // namespace

TEST_CASE("averaging at every step under plain SGD is synchronous training", "[contract][averaging]") {
  for (const NamedGraph& model : small_models())
    for (const std::vector<std::int64_t>& shares : {std::vector<std::int64_t>{4}, {2, 2}, {1, 3, 2}, {2, 2, 2, 2}})
      for (const bool holes : {false, true}) {
        CAPTURE(model.name, shares.size(), holes);
        ReplicaRun run{.graph = model.graph, .shares = shares};
        run.momentum = 0, run.holes = holes, run.steps = 8;
        const ReplicaResult synchronous = train_replicas(run);
        run.strategy = "averaging", run.averaging.period = 1;
        check_weights(run, synchronous.weights);
      }
}

TEST_CASE("one replica that averages is one replica, by every rule", "[contract][averaging]") {
  for (const std::string rule : {"sgd", "adam", "lars", "lamb", "rmsprop"})
    for (const double clip_norm : {0.0, 0.1}) {
      CAPTURE(rule, clip_norm);
      ReplicaRun run = run_of("synchronous", {4});
      run.rule = rule, run.clip_norm = clip_norm;
      const ReplicaResult alone = train_replicas(run);
      run.strategy = "averaging";
      CHECK(train_replicas(run).weights == alone.weights);
    }
}

TEST_CASE("averaging has the weights of simulated workers, for every treatment of states", "[contract][averaging]") {
  const AveragedStates states = GENERATE(AveragedStates::average, AveragedStates::reset, AveragedStates::local);
  const int period = GENERATE(2, 3, 7);
  ReplicaRun run = run_of("averaging", {2, 1, 3});
  run.steps = 13;
  run.averaging = {.period = period, .states = states};
  CAPTURE(static_cast<int>(states), period);
  LocalWorkers workers(run);
  for (int step = 0; step < run.steps; ++step) {
    workers.step(step);
    if (!exchanges(run, period, step)) continue;
    const std::vector<double> mean = workers.mean_weights();
    std::vector<double> momentum(mean.size());
    if (states == AveragedStates::average)
      for (int w = 0; w < workers.size(); ++w) momentum = plus(momentum, workers.share(w), workers.momentum(w));
    for (int w = 0; w < workers.size(); ++w) {
      workers.weights(w) = mean;
      if (states != AveragedStates::local) workers.momentum(w) = momentum;
    }
  }
  check_weights(run, workers.weights(0));
  SECTION("and after a resume") {
    const ReplicaResult whole = train_replicas(run);
    run.resume_at = 2 * period <= 12 ? 2 * period : period;
    CHECK(train_replicas(run).weights == whole.weights);
  }
}

TEST_CASE("the outer step is a momentum step on the averaged change", "[contract][averaging]") {
  for (const double rate : {1.0, 0.7}) {
    ReplicaRun run = run_of("averaging", {2, 2});
    run.steps = 12;
    run.averaging = {.period = 3, .outer_momentum = 0.6, .outer_rate = rate};
    LocalWorkers workers(run);
    std::vector<double> anchor = workers.weights(0), velocity(anchor.size());
    for (int step = 0; step < run.steps; ++step) {
      workers.step(step);
      if (!exchanges(run, 3, step)) continue;
      const std::vector<double> change = plus(workers.mean_weights(), -1, anchor);
      const double momentum = step < 3 ? 0 : 0.6;
      for (std::size_t i = 0; i < velocity.size(); ++i) velocity[i] = momentum * velocity[i] + rate * change[i];
      anchor = plus(anchor, 1, velocity);
      for (int w = 0; w < workers.size(); ++w) workers.weights(w) = anchor;
    }
    CAPTURE(rate);
    check_weights(run, anchor);
    const ReplicaResult whole = train_replicas(run);
    run.resume_at = 6;
    CHECK(train_replicas(run).weights == whole.weights);
  }
}

TEST_CASE("the outer Nesterov step is that of DiLoCo, whatever the learning rate", "[contract][averaging]") {
  for (const double rate : {1.0, 0.7})
    for (const std::vector<std::int64_t>& shares : {std::vector<std::int64_t>{4}, {2, 1, 3}, {1, 3, 1, 1, 2}}) {
      ReplicaRun run = run_of("averaging", shares);
      run.steps = 14;
      run.averaging = {.period = 3, .outer_momentum = 0.9, .outer_rate = rate, .outer_step = OuterStep::nesterov};
      LocalWorkers workers(run);
      std::vector<double> a = workers.weights(0), b(a.size());
      for (int step = 0; step < run.steps; ++step) {
        workers.step(step);
        if (!exchanges(run, 3, step)) continue;
        const std::vector<double> d = plus(a, -1, workers.mean_weights());
        for (std::size_t i = 0; i < a.size(); ++i) {
          b[i] = 0.9 * b[i] + d[i];
          a[i] -= rate * (d[i] + 0.9 * b[i]);
        }
        for (int w = 0; w < workers.size(); ++w) workers.weights(w) = a;
      }
      CAPTURE(rate, shares.size());
      const ReplicaResult whole = train_replicas(run);
      check_one_model(whole);
      CHECK(tensor_distance(run.graph.parameters(), whole.weights, a) <= 1e-12);
      CHECK(whole.sent_bytes == Approx(whole.formula_bytes * run.steps).epsilon(1e-12));
      run.resume_at = 6;
      CHECK(train_replicas(run).weights == whole.weights);
      run.resume_at = -1, run.averaging.outer_step = OuterStep::heavy_ball;
      CHECK(tensor_distance(run.graph.parameters(), train_replicas(run).weights, a) > 1e-3);
    }
}

TEST_CASE("an outer Nesterov step of rate 1 without momentum is plain averaging", "[contract][averaging]") {
  for (const AveragedStates states : {AveragedStates::average, AveragedStates::reset, AveragedStates::local})
    for (const std::vector<std::int64_t>& shares : {std::vector<std::int64_t>{4}, {2, 2}, {2, 1, 3}}) {
      CAPTURE(static_cast<int>(states), shares.size());
      ReplicaRun run = run_of("averaging", shares);
      run.steps = 3;
      run.averaging = {.period = 3, .states = states};
      const std::vector<double> plain = train_replicas(run).weights;
      run.averaging.outer_step = OuterStep::nesterov;
      const std::vector<double> outer = train_replicas(run).weights;
      double largest = 0, distance = 0;
      for (std::size_t i = 0; i < plain.size(); ++i) {
        largest = std::max(largest, std::abs(plain[i]));
        distance = std::max(distance, std::abs(plain[i] - outer[i]));
      }
      CHECK(distance <= 1e-15 * largest);
      run.steps = 12;
      check_weights(run, [&] {
        ReplicaRun without = run;
        without.averaging.outer_step = OuterStep::heavy_ball;
        return train_replicas(without).weights;
      }());
    }
}

TEST_CASE("synchronous epochs come before local steps", "[contract][averaging]") {
  ReplicaRun run = run_of("synchronous", {2, 2});
  run.steps = 6;
  const std::vector<double> synchronous = train_replicas(run).weights;
  run.strategy = "averaging";
  run.averaging = {.period = 4, .synchronous_epochs = 2};
  run.steps_per_epoch = 3;
  check_weights(run, synchronous);
  run.steps = 7;
  const ReplicaResult further = train_replicas(run);
  run.averaging.synchronous_epochs = 3;
  CHECK(further.weights != train_replicas(run).weights);
}

TEST_CASE("elastic averaging has the centre of simulated workers", "[contract][averaging]") {
  const int period = GENERATE(1, 3);
  ReplicaRun run = run_of("elastic", {2, 2, 2});
  run.steps = 10;
  run.elastic = {.period = period, .pull = 0.6};
  LocalWorkers workers(run);
  std::vector<double> centre = workers.weights(0);
  for (int step = 0; step < run.steps; ++step) {
    workers.step(step);
    if (!exchanges(run, period, step)) continue;
    std::vector<double> moved = centre;
    for (int w = 0; w < workers.size(); ++w) {
      const std::vector<double> apart = plus(workers.weights(w), -1, centre);
      moved = plus(moved, 0.6 / 3, apart);
      workers.weights(w) = plus(workers.weights(w), -0.6 / 3, apart);
    }
    centre = moved;
  }
  CAPTURE(period);
  check_weights(run, centre);
  run.resume_at = 6;
  const ReplicaResult resumed = train_replicas(run);
  run.resume_at = -1;
  CHECK(resumed.weights == train_replicas(run).weights);
}

TEST_CASE("weights are averaged by every algorithm, and staged from a device of its own memory",
          "[contract][averaging]") {
  for (const std::string strategy : {"averaging", "elastic"}) {
    ReplicaRun run = run_of(strategy, {2, 2, 2});
    run.steps = 6;
    run.averaging.period = run.elastic.period = 2;
    const std::vector<double> ring = train_replicas(run).weights;
    for (const std::string& algorithm : allreduce_names()) {
      CAPTURE(strategy, algorithm);
      run.algorithm = algorithm;
      if (algorithm == "mpi") continue;  // the library sends its own messages
      check_weights(run, ring);
    }
    run.algorithm = "ring", run.device = "discrete";
    CHECK(train_replicas(run).weights == ring);
  }
}

TEST_CASE("coded averagings: the residual keeps what a message leaves out", "[contract][averaging]") {
  for (const std::string strategy : {"averaging", "elastic"})
    for (const std::string codec : {"fp16", "int8", "onebit", "topk", "threshold", "lossless"}) {
      CAPTURE(strategy, codec);
      ReplicaRun run = run_of(strategy, {2, 2, 2});
      run.device = "onednn", run.dtype = run.activations = DType::f32;
      run.averaging.period = run.elastic.period = 2;
      run.learning_rate = 0.01, run.steps = 8;
      const ReplicaResult plain = train_replicas(run);
      run.codec = codec, run.density = 0.2;
      const ReplicaResult coded = train_replicas(run);
      check_one_model(coded);
      if (codec == "lossless") {
        CHECK(tensor_distance(run.graph.parameters(), coded.weights, plain.weights) <= 1e-4);
        continue;
      }
      CHECK(coded.sent_bytes < 0.7 * plain.sent_bytes);
      run.resume_at = 4;
      CHECK(train_replicas(run).weights == coded.weights);
    }
}

}  // namespace echelon
