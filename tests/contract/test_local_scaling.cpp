// SPDX-License-Identifier: Apache-2.0
// Scaled losses with strategies whose replicas take their own steps: each replica has its own scale, which changes no
// bit of the weights, is lowered where that replica's gradients overflow, and is saved.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "config/traits/strategies.hpp"
#include "tests/support/one_model.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/strategy_periods.hpp"

namespace echelon {
namespace {

using namespace test;

// Three replicas; asynchronous training has one worker beside two servers, so that the order of arrivals is known.
ReplicaRun local_run(const std::string& strategy) {
  ReplicaRun run{.graph = small_cnn(), .shares = {2, 2, 2}, .strategy = strategy, .steps = 9, .rule = "adam"};
  run.learning_rate = 0.002, run.weight_decay = 0;
  run.averaging.states = AveragedStates::local;
  run.sets = meeting_every(strategy, 3);
  run.strom.density = 0.1;
  if (strategy == "asynchronous" || strategy == "stale_synchronous") run.shares = {6}, run.server_ranks = 2;
  return run;
}

const std::vector<std::string> kLocal =
    names_where(kStrategies, [](const StrategyTraits& strategy) { return strategy.local_steps; });

// Returns the sets of steps that replicas skipped.
std::set<std::vector<std::int64_t>> skips_by_replica(const ReplicaResult& result) {
  std::set<std::vector<std::int64_t>> all;
  for (const std::vector<TakenStep>& steps : result.taken) {
    std::vector<std::int64_t> skipped;
    for (const TakenStep& step : steps)
      if (step.skipped) skipped.push_back(step.step);
    all.insert(std::move(skipped));
  }
  return all;
}

TEST_CASE("a scaled loss changes no bit where replicas take steps of their own", "[local_scaling]") {
  for (const std::string& strategy : kLocal) {
    CAPTURE(strategy);
    ReplicaRun run = local_run(strategy);
    const std::vector<double> plain = train_replicas(run).weights;
    run.scaling = {.dynamic = true, .start = 0x1p20};
    const ReplicaResult scaled = train_replicas(run);
    check_one_model(scaled);
    CHECK((scaled.weights == plain));  // extra parentheses: not printed on failure
    CHECK(skips_by_replica(scaled) == std::set<std::vector<std::int64_t>>{{}});
  }
}

TEST_CASE("a replica whose gradients overflow lowers its own scale, and goes on with it from a checkpoint",
          "[local_scaling]") {
  for (const std::string& strategy : kLocal) {
    CAPTURE(strategy);
    ReplicaRun run = local_run(strategy);
    if (run.shares.size() > 1) run.shares = {1, 4, 2};
    run.dtype = run.activations = DType::f32, run.steps = 24;
    run.scaling = {.dynamic = true, .start = 0x1p133};
    const ReplicaResult whole = train_replicas(run);
    check_one_model(whole);
    CHECK(std::all_of(whole.weights.begin(), whole.weights.end(), [](double w) { return std::isfinite(w); }));
    CHECK(skips_by_replica(whole).size() == run.shares.size());
    CHECK_FALSE(skips_by_replica(whole).begin()->empty());
    run.resume_at = 6;  // the replicas have different scales here
    CHECK((train_replicas(run).weights == whole.weights));
  }
}

TEST_CASE("asynchronous workers with scales of their own end with one model", "[local_scaling]") {
  for (const int server_ranks : {0, 1}) {
    ReplicaRun run = local_run("asynchronous");
    run.shares = {2, 3, 1}, run.server_ranks = server_ranks;
    run.dtype = run.activations = DType::f32;
    run.scaling = {.dynamic = true, .start = 0x1p130};
    check_one_model(train_replicas(run));
  }
}

}  // namespace
}  // namespace echelon
