// SPDX-License-Identifier: Apache-2.0
// Sparse gradients between replicas: they give the weights of dense ones, in double to 1e-8, and the bytes of the price
// list.
#include <catch2/catch.hpp>
#include <cstdio>

#include "comm/collective/algorithms.hpp"
#include "exchange/allreduce/row_price.hpp"
#include "model/build.hpp"
#include "tests/support/one_model.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/rounding.hpp"

namespace echelon {
namespace {

using namespace test;

constexpr double kBound = 1e-8;
constexpr double kByBytes = 0, kByRows = 1, kWhole = 1e-9;  // exchange.sparse_density

// Each sample holds four of `tokens`; both tables are sparse, and the second one is ten times as long as needed.
Graph tables_net(std::int64_t tokens, bool dense = false) {
  LayerConfig narrow, wide, first_sum, second_sum, both, hidden, relu, head;
  narrow.type = wide.type = "embedding", narrow.sparse = wide.sparse = true;
  narrow.units = 2, wide.units = 5, wide.vocabulary = 10 * tokens;
  narrow.name = "narrow", wide.name = "wide", narrow.inputs = wide.inputs = {"samples"};
  first_sum.type = second_sum.type = "sequence_pool";
  first_sum.name = "first", second_sum.name = "second";
  first_sum.inputs = {"narrow"}, second_sum.inputs = {"wide"};
  both.type = "concat", both.inputs = {"first", "second"};
  hidden.type = head.type = "dense", hidden.units = 6, head.units = 3, relu.type = "relu";
  ModelConfig model;
  model.layers = {narrow, wide, first_sum, second_sum, both, hidden, relu, head};
  model.dense_embeddings = dense;
  return build_model(model, {.shape = {4}, .vocabulary = tokens, .classes = 3});
}

ReplicaRun plain_sgd(int k, double density, std::int64_t tokens = 40) {
  return {.graph = tables_net(tokens),
          .shares = std::vector<std::int64_t>(static_cast<std::size_t>(k), 2),
          .momentum = 0,
          .weight_decay = 0,
          .sparse_density = density};
}

ReplicaRun dense_twin(ReplicaRun run, std::int64_t tokens = 40) {
  run.graph = tables_net(tokens, true);
  return run;
}

void check_same(const ReplicaRun& run, const ReplicaRun& other) {
  const ReplicaResult a = train_replicas(run), b = train_replicas(other);
  for (std::uint64_t checksum : a.checksums) CHECK(checksum == a.checksums.front());
  CHECK(tensor_distance(run.graph.parameters(), a.gradients, b.gradients) <= kBound);
  CHECK(tensor_distance(run.graph.parameters(), a.weights, b.weights) <= kBound);
}

TEST_CASE("sparse tables: k replicas have the weights of one and of dense tables", "[equality][sparse]") {
  for (const std::string& algorithm : allreduce_names())
    for (int k = 1; k <= 4; ++k)
      for (double density : {kByBytes, kByRows, kWhole}) DYNAMIC_SECTION(algorithm << " k=" << k << " at " << density) {
          ReplicaRun run = plain_sgd(k, density);
          run.algorithm = algorithm;
          check_same(run, on_one_replica(run, false));
          check_same(run, dense_twin(run));
        }
}

TEST_CASE("sparse tables at asynchronous servers: lossless messages leave out the rows that nobody touched",
          "[asynchronous][sparse]") {
  for (const int servers : {1, 2})
    for (const DType dtype : {DType::f32, DType::f64}) {
      CAPTURE(servers, name_of(dtype));
      ReplicaRun run = plain_sgd(1, kByBytes, 4000);
      run.strategy = "asynchronous", run.server_ranks = servers, run.bucket_kb = 64;
      run.dtype = run.activations = dtype;
      const ReplicaResult whole = train_replicas(run);
      run.codec = "lossless";
      const ReplicaResult touched = train_replicas(run);
      CHECK(touched.weights == whole.weights);
      CHECK(touched.sent_bytes < 0.1 * whole.sent_bytes);
      run.shares = {2, 2, 2};
      check_one_model(train_replicas(run));
    }
}

TEST_CASE("sparse tables: unequal shares, samples left out, micro-batches, clipping, a scaled loss",
          "[equality][sparse]") {
  for (double density : {kByBytes, kByRows, kWhole}) DYNAMIC_SECTION("at " << density) {
      ReplicaRun run = plain_sgd(2, density);
      run.shares = {1, 3}, run.holes = true;
      check_same(run, on_one_replica(run, false));
      run.shares = {6, 2, 4}, run.accumulation = 2;
      check_same(run, on_one_replica(run, false));
      check_same(run, dense_twin(run));
      run.clip_norm = 0.05;
      check_same(run, dense_twin(run));
      run.scaling = {.dynamic = true, .start = 1024};
      check_same(run, dense_twin(run));
    }
}

TEST_CASE("sparse tables under every rule: whole tables are updated, as for dense ones", "[equality][sparse]") {
  for (const char* rule : {"sgd", "adam", "rmsprop", "lars", "lamb"})
    for (double density : {kByRows, kWhole}) DYNAMIC_SECTION(rule << " at " << density) {
        ReplicaRun run = plain_sgd(3, density);
        run.rule = rule, run.momentum = 0.9, run.weight_decay = 1e-2, run.learning_rate = 0.01;
        check_same(run, dense_twin(run));
        check_same(run, on_one_replica(run, false));
      }
}

TEST_CASE("lazy updates: k replicas equal one on both sides of the density limit, and differ from the dense update",
          "[equality][sparse]") {
  for (const char* rule : {"sgd", "adamw"}) DYNAMIC_SECTION(rule) {
      ReplicaRun run = plain_sgd(3, kByRows);
      run.rule = rule, run.momentum = 0.9, run.weight_decay = 1e-2, run.lazy = true;
      check_same(run, on_one_replica(run, false));
      ReplicaRun whole = run;
      whole.sparse_density = kWhole;
      check_same(whole, run);
      run.lazy = false;
      CHECK(tensor_distance(run.graph.parameters(), train_replicas(whole).weights, train_replicas(run).weights) > 1e-4);
    }
}

TEST_CASE("sparse tables of a device out of the host's reach", "[equality][sparse]") {
  for (double density : {kByRows, kWhole}) {
    ReplicaRun far = plain_sgd(3, density), near = far;
    far.device = "discrete";
    CHECK(train_replicas(far).weights == train_replicas(near).weights);
    far.lazy = near.lazy = true;
    far.momentum = near.momentum = 0.9;
    CHECK(train_replicas(far).weights == train_replicas(near).weights);
  }
}

TEST_CASE("sparse tables in fp32 on onednn", "[equality][sparse][onednn]") {
  for (double density : {kByBytes, kByRows, kWhole}) {
    ReplicaRun run = plain_sgd(3, density);
    run.device = "onednn", run.dtype = DType::f32;
    const ReplicaResult split = train_replicas(run), whole = train_replicas(on_one_replica(run, false));
    for (std::uint64_t checksum : split.checksums) CHECK(checksum == split.checksums.front());
    ReplicaRun reversed = on_one_replica(run, false);
    reversed.reversed = true;
    const double floor = tensor_distance(run.graph.parameters(), train_replicas(reversed).weights, whole.weights);
    CHECK(tensor_distance(run.graph.parameters(), split.weights, whole.weights) <= test::rounding_bound(floor));
  }
}

TEST_CASE("rows on the wire: bytes as the price list has them, far below dense ones", "[equality][sparse]") {
  for (int k = 1; k <= 4; ++k)
    for (double density : {kByBytes, kByRows, kWhole})
      for (bool lazy : {false, true}) DYNAMIC_SECTION("k=" << k << " at " << density << (lazy ? " lazy" : "")) {
          ReplicaRun run = plain_sgd(k, density, 1000);
          run.steps = 3, run.lazy = lazy;
          const ReplicaResult sparse = train_replicas(run), dense = train_replicas(dense_twin(run, 1000));
          CHECK(sparse.sent_bytes == Approx(3 * sparse.formula_bytes).epsilon(1e-12));
          CHECK(dense.sent_bytes == 3 * dense.formula_bytes);
          if (density != kWhole) CHECK(sparse.sent_bytes <= dense.sent_bytes / 50);
          if (density == kWhole && !lazy)  // plus the all-gather of the numbers of rows
            CHECK(sparse.sent_bytes ==
                  Approx(dense.sent_bytes + 3.0 * static_cast<double>(price_allgather(k, 16).payload_elems)));
        }
}

TEST_CASE("near the break-even density one table travels as rows and the other whole", "[equality][sparse]") {
  ReplicaRun run = plain_sgd(4, kByBytes, 8);  // 8 samples of 4 tokens touch most of 8 rows, and few of 80
  const RowRequest request{"ring", {.ranks = 4, .hosts = {}}, DType::f64, false, 0};
  CHECK(densest_rows(request, run.graph.parameters()[0]) == Approx(0.4));
  CHECK(densest_rows(request, run.graph.parameters()[1]) == Approx(2.0 * 40 / 44 / 4));
  const ReplicaResult mixed = train_replicas(run);
  CHECK(mixed.sent_bytes == Approx(20 * mixed.formula_bytes).epsilon(1e-12));
  for (double density : {kByRows, kWhole}) {
    ReplicaRun other = run;
    other.sparse_density = density;
    check_same(run, other);
    CHECK(mixed.sent_bytes < train_replicas(other).sent_bytes);
  }
}

TEST_CASE("the price of rows, worked out by hand", "[sparse]") {
  ParameterSet set;
  set.add("table", Shape{1000, 16}, {});
  RowRequest request{"ring", {.ranks = 3, .hosts = {}}, DType::f32, false, 0};
  CHECK(rows_bytes(request, set[0], 50) == 2 * 50 * (4 + 64));
  CHECK(whole_bytes(request, set[0]) == 2 * 2 * 16000 * 4);
  CHECK(densest_rows(request, set[0]) == Approx(2.0 * 64 / 68 / 3));
  request.lazy = true;
  CHECK(whole_bytes(request, set[0]) == 2 * 2 * 17000 * 4);
  request.sparse_density = 0.25;
  CHECK(densest_rows(request, set[0]) == 0.25);
  request.sparse_density = 0, request.lazy = false, request.algorithm = "naive";
  CHECK(densest_rows(request, set[0]) == Approx(64.0 / 68));  // the whole table travels k-1 times, so rows win
}

}  // namespace
}  // namespace echelon
