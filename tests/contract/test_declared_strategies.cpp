// SPDX-License-Identifier: Apache-2.0
// Checks that strategies do what they declare (config/traits/strategies.hpp), with ranks as threads.
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

#include "config/traits/strategies.hpp"
#include "model/build.hpp"
#include "tests/support/replicas.hpp"

namespace echelon {
namespace {

using namespace test;

ReplicaRun run_of(std::string_view strategy) {
  ReplicaRun run{.graph = small_digits_cnn(), .shares = {2, 2, 2, 2}};
  run.strategy = strategy;
  run.dtype = run.activations = DType::f32;
  run.device = "onednn";
  run.steps = 2;
  return run;
}

// A net with an embedding of many rows, of which a step touches few.
Graph table_net(bool sparse) {
  LayerConfig table, sum, head;
  table.type = "embedding", table.units = 8, table.vocabulary = 4000, table.sparse = sparse;
  sum.type = "sequence_pool";
  head.type = "dense", head.units = 3;
  ModelConfig model;
  model.layers = {table, sum, head};
  return build_model(model, {.shape = {4}, .vocabulary = 40, .classes = 3});
}

// Tells whether the run is accepted; otherwise a rank names the key of [exchange] that is refused.
bool is_taken(const ReplicaRun& run) {
  try {
    train_replicas(run);
    return true;
  } catch (const std::runtime_error& error) {
    if (std::string(error.what()).find("exchange.") == std::string::npos) throw;
    return false;
  }
}

}  // namespace

TEST_CASE("strategies that declare to read exchange.algorithm sum by it, and no others", "[contract][declared]") {
  for (const StrategyTraits& declared : kStrategies) {
    CAPTURE(declared.name);
    ReplicaRun ring = run_of(declared.name), naive = ring;
    naive.algorithm = "naive";
    CHECK((train_replicas(naive).sent_bytes > 1.2 * train_replicas(ring).sent_bytes) == declared.all_reduces());
  }
}

TEST_CASE("strategies that declare to carry codes send fewer bytes with a codec", "[contract][declared]") {
  for (const StrategyTraits& declared : kStrategies) {
    CAPTURE(declared.name);
    ReplicaRun plain = run_of(declared.name), coded = plain;
    coded.codec = "fp16";
    const bool fewer = is_taken(coded) && train_replicas(coded).sent_bytes < 0.7 * train_replicas(plain).sent_bytes;
    CHECK(fewer == declared.carries_codes);
  }
}

TEST_CASE("strategies that declare whole or measured parameters accept rules that need norms, the others refuse",
          "[contract][declared]") {
  for (const StrategyTraits& declared : kStrategies)
    for (const char* rule : {"lars", "lamb"}) {
      CAPTURE(declared.name, rule);
      ReplicaRun run = run_of(declared.name);
      run.rule = rule;
      CHECK(is_taken(run) == (declared.whole_parameters || declared.measures_parts));
    }
}

TEST_CASE("strategies that declare that late replicas leave out steps let a slow one do so, the others do not",
          "[contract][declared]") {
  for (const StrategyTraits& declared : kStrategies) {
    CAPTURE(declared.name);
    // On a busy machine the other replicas may be as slow, so that none is late; then a slower one is tried.
    bool left_out = false;
    for (const double slow_s : {0.03, 0.12, 0.5}) {
      ReplicaRun run = run_of(declared.name);
      run.steps = 8, run.slow_s = slow_s;
      left_out = train_replicas(run).taken[0].size() < 8;
      if (left_out || !declared.skips_steps) break;
    }
    CHECK(left_out == declared.skips_steps);
  }
}

TEST_CASE("strategies that declare to track rows send sparse tables by rows", "[contract][declared]") {
  for (const StrategyTraits& declared : kStrategies) {
    CAPTURE(declared.name);
    ReplicaRun sparse = run_of(declared.name), dense = sparse;
    sparse.graph = table_net(true), dense.graph = table_net(false);
    CHECK((train_replicas(sparse).sent_bytes < 0.5 * train_replicas(dense).sent_bytes) == declared.tracks_rows);
  }
}

}  // namespace echelon
