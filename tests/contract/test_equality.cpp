// SPDX-License-Identifier: Apache-2.0
// The most important test: k replicas of b samples end with the weights of 1 replica of k*b.
//
// In double on `reference`, weights agree to 1e-8 after 20 steps. On fast devices in fp32, gradients of step 1 and
// (without batch norm) weights after 20 steps agree to 1e-4; the effect of reversing samples is printed.
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "comm/collective/algorithms.hpp"
#include "optim/rules.hpp"
#include "tests/support/one_model.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/rounding.hpp"

namespace echelon {
namespace {

using namespace test;

constexpr double kDouble = 1e-8;

using Model = NamedGraph;

std::vector<Model> models() {
  return {{"digits_cnn", small_digits_cnn()}, {"cnn_32_64", small_cnn()}, {"dropout", small_dropout_net()}};
}

void check_equal(const ReplicaRun& run, bool groups, double bound) {
  const ReplicaResult split = train_replicas(run), whole = train_replicas(on_one_replica(run, groups));
  check_one_model(split);
  CHECK(tensor_distance(run.graph.parameters(), split.gradients, whole.gradients) <= bound);
  CHECK(tensor_distance(run.graph.parameters(), split.weights, whole.weights) <= bound);
}

TEST_CASE("k replicas have the weights of one with the k-fold batch, in double", "[equality]") {
  for (const Model& model : models())
    for (const std::string& algorithm : allreduce_names())
      for (int k = 1; k <= 4; ++k) DYNAMIC_SECTION(model.name << " " << algorithm << " k=" << k) {
          check_equal({.graph = model.graph,
                       .shares = std::vector<std::int64_t>(static_cast<std::size_t>(k), 2),
                       .algorithm = algorithm},
                      false, kDouble);
        }
}

TEST_CASE("k workers around servers that take the steps have the weights of one, in double", "[equality]") {
  for (const char* rule : {"sgd", "adam", "rmsprop"})
    for (int k = 1; k <= 4; ++k)
      for (int servers = 0; servers <= k; ++servers) DYNAMIC_SECTION(rule << " k=" << k << " servers=" << servers) {
          ReplicaRun run{.graph = small_cnn(), .shares = std::vector<std::int64_t>(static_cast<std::size_t>(k), 2)};
          run.strategy = "server";
          run.servers = servers;
          run.partition = servers % 2 == 0 ? ServerPartition::variables : ServerPartition::ranges;
          run.rule = rule;
          const ReplicaResult split = train_replicas(run), whole = train_replicas(on_one_replica(run, false));
          check_one_model(split);
          CHECK(tensor_distance(run.graph.parameters(), split.weights, whole.weights) <= kDouble);
          CHECK(split.sent_bytes == split.formula_bytes * run.steps);
        }
  DYNAMIC_SECTION("batch norm, accumulation") {
    ReplicaRun run{.graph = small_batch_norm_net(), .shares = {4, 4}, .accumulation = 2};
    run.strategy = "server";
    run.server_ranks = GENERATE(0, 1, 2);
    const ReplicaResult split = train_replicas(run), whole = train_replicas(on_one_replica(run, true));
    check_one_model(split);
    CHECK(tensor_distance(run.graph.parameters(), split.weights, whole.weights) <= kDouble);
  }
  DYNAMIC_SECTION("a device of its own memory") {
    ReplicaRun run{.graph = small_cnn(), .shares = {2, 2, 2}};
    run.strategy = "server";
    run.device = "discrete";
    const ReplicaResult split = train_replicas(run), whole = train_replicas(on_one_replica(run, false));
    check_one_model(split);
    CHECK(tensor_distance(run.graph.parameters(), split.weights, whole.weights) <= kDouble);
  }
}

TEST_CASE("servers on ranks of their own: workers have the weights of one replica, in double", "[equality]") {
  for (const char* rule : {"sgd", "adam"})
    for (int k = 1; k <= 4; ++k)
      for (int servers = 1; servers <= 3; ++servers)
        DYNAMIC_SECTION(rule << " workers=" << k << " servers=" << servers) {
          const auto partition = (k + servers) % 2 == 0 ? ServerPartition::ranges : ServerPartition::variables;
          ReplicaRun run{.graph = small_cnn(), .shares = std::vector<std::int64_t>(static_cast<std::size_t>(k), 2)};
          run.strategy = "server";
          run.server_ranks = servers;
          run.partition = partition;
          run.rule = rule;
          const ReplicaResult split = train_replicas(run), whole = train_replicas(on_one_replica(run, false));
          check_one_model(split);
          CHECK(split.checksums.size() == static_cast<std::size_t>(k));
          CHECK(tensor_distance(run.graph.parameters(), split.weights, whole.weights) <= kDouble);
          const double values = static_cast<double>(run.graph.parameters().elems());
          CHECK(split.formula_bytes == 2.0 * k * values * sizeof(double));
          CHECK(split.sent_bytes == split.formula_bytes * run.steps);
          run.resume_at = 7;
          CHECK(train_replicas(run).weights == split.weights);
        }
  DYNAMIC_SECTION("a device of its own memory") {
    ReplicaRun run{.graph = small_cnn(), .shares = {2, 2}};
    run.strategy = "server";
    run.server_ranks = 2;
    const ReplicaResult near = train_replicas(run);
    run.device = "discrete";
    CHECK(train_replicas(run).weights == near.weights);
  }
}

TEST_CASE("norms over the parts of servers: every rule, clipped or not, is one replica's, in double", "[equality]") {
  for (const std::string& rule : rule_names())
    for (const double clip_norm : {0.0, 0.1}) DYNAMIC_SECTION(rule << " clip " << clip_norm) {
        ReplicaRun run{.graph = clip_norm > 0 ? small_batch_norm_net() : small_cnn(),
                       .shares = {2, 2, 2},
                       .steps = 10,
                       .bucket_kb = 0.7,
                       .learning_rate = rule == "lars" ? 5.0 : 0.01,
                       .rule = rule,
                       .clip_norm = clip_norm};
        run.strategy = "server";
        const ReplicaResult whole = train_replicas(on_one_replica(run, true));
        for (const auto& [servers, server_ranks] : {std::pair(0, 0), std::pair(2, 0), std::pair(0, 2)}) {
          CAPTURE(servers, server_ranks);
          run.servers = servers, run.server_ranks = server_ranks, run.resume_at = servers == 2 ? 4 : -1;
          const ReplicaResult split = train_replicas(run);
          check_one_model(split);
          CHECK(tensor_distance(run.graph.parameters(), split.weights, whole.weights) <= kDouble);
          CHECK(split.gradient_norm == Approx(whole.gradient_norm).epsilon(1e-9));
          if (run.resume_at < 0) CHECK(split.sent_bytes == split.formula_bytes * run.steps);
        }
      }
}

TEST_CASE("a loss that is scaled beside servers: overflows are skipped and counted on every rank", "[equality]") {
  ReplicaRun run{.graph = small_batch_norm_net(), .shares = {2, 2}};
  run.scaling = {.dynamic = true, .start = 0x1.8p1023};
  run.strategy = "server";
  run.server_ranks = GENERATE(0, 1);
  const ReplicaResult split = train_replicas(run), whole = train_replicas(on_one_replica(run, true));
  check_one_model(split);
  CHECK(split.skipped == whole.skipped);
  CHECK(split.skipped > 0);
  CHECK(tensor_distance(run.graph.parameters(), split.weights, whole.weights) <= kDouble);
}

TEST_CASE("recurrent models, k replicas: in double, with unequal shares, accumulation and tokens left out",
          "[equality]") {
  for (const Model& model : small_sequence_models()) {
    for (int k = 1; k <= 4; ++k) DYNAMIC_SECTION(model.name << " k=" << k) {
        check_equal({.graph = model.graph, .shares = std::vector<std::int64_t>(static_cast<std::size_t>(k), 2)}, false,
                    kDouble);
      }
    DYNAMIC_SECTION(model.name << " unequal") {
      check_equal({.graph = model.graph, .shares = {1, 3}}, false, kDouble);
      check_equal({.graph = model.graph, .shares = {4, 2}, .accumulation = 2, .holes = true}, false, kDouble);
    }
  }
}

TEST_CASE("unequal shares and samples of weight 0 change nothing", "[equality]") {
  for (const Model& model : models())
    for (const std::string& algorithm : allreduce_names()) DYNAMIC_SECTION(model.name << " " << algorithm) {
        check_equal({.graph = model.graph, .shares = {1, 3}, .algorithm = algorithm}, false, kDouble);
        check_equal({.graph = model.graph, .shares = {6, 2}, .accumulation = 2, .algorithm = algorithm, .holes = true},
                    false, kDouble);
      }
}

TEST_CASE("accumulated micro-batches are the large batch", "[equality]") {
  for (const Model& model : models())
    for (std::int64_t accumulation : {2, 4}) DYNAMIC_SECTION(model.name << " accumulation " << accumulation) {
        check_equal({.graph = model.graph, .shares = {4, 4}, .accumulation = accumulation}, false, kDouble);
        check_equal({.graph = model.graph, .shares = {8}, .accumulation = accumulation}, false, kDouble);
      }
}

TEST_CASE("batch norm over micro-batches: replicas and accumulation are the same groups", "[equality]") {
  const Graph graph = small_batch_norm_net();
  for (const std::string& algorithm : allreduce_names())
    for (int k = 2; k <= 4; ++k) DYNAMIC_SECTION(algorithm << " k=" << k) {
        const std::vector<std::int64_t> shares(static_cast<std::size_t>(k), 4);
        check_equal({.graph = graph, .shares = shares, .algorithm = algorithm}, true, kDouble);
        check_equal({.graph = graph, .shares = shares, .accumulation = 2, .algorithm = algorithm}, true, kDouble);
      }
}

TEST_CASE("batch norm: running statistics are those of the replicas, weighted by their shares", "[equality]") {
  const Graph graph = small_batch_norm_net();
  ReplicaRun run{.graph = graph, .shares = {2, 6, 4}, .steps = 1};
  const std::vector<double> together = train_replicas(run).weights;
  std::vector<double> wanted(together.size());
  std::int64_t first = 0;
  for (const std::int64_t share : run.shares) {
    ReplicaRun alone = run;
    alone.shares = {share};
    alone.first_id = first;
    const std::vector<double> weights = train_replicas(alone).weights;
    for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] += static_cast<double>(share) / 12 * weights[i];
    first += share;
  }
  int statistics = 0;
  for (const Parameter& p : graph.parameters().all()) {
    if (p.kind != ParameterKind::statistic) continue;
    CAPTURE(p.name);
    ++statistics;
    for (auto i = static_cast<std::size_t>(p.begin); i < static_cast<std::size_t>(p.end()); ++i)
      CHECK(together[i] == Approx(wanted[i]).epsilon(1e-12).margin(1e-14));
  }
  CHECK(statistics == 4);
}

TEST_CASE("every rule, and clipping: k replicas are one", "[equality]") {
  for (const std::string& rule : rule_names())
    for (const double clip_norm : {0.0, 0.1}) DYNAMIC_SECTION(rule << " clip " << clip_norm) {
        const double rate = rule == "lars" ? 5 : 0.01;
        const ReplicaRun lenet{.graph = small_cnn(),
                               .shares = {1, 3, 2},
                               .steps = 10,
                               .learning_rate = rate,
                               .rule = rule,
                               .clip_norm = clip_norm};
        check_equal(lenet, false, kDouble);
        ReplicaRun norm = lenet;
        norm.graph = small_batch_norm_net();
        norm.shares = {4, 4};
        check_equal(norm, true, kDouble);
      }
}

TEST_CASE("synchronised batch norm takes its statistics over all replicas", "[equality]") {
  const bool renorm = GENERATE(false, true);
  ModelConfig norms;
  norms.synchronised_batch_norm = true, norms.batch_renorm = renorm;
  const Graph graph = small_batch_norm_net(norms);
  for (const std::string& algorithm : allreduce_names()) DYNAMIC_SECTION(algorithm << (renorm ? " renorm" : "")) {
      for (const std::vector<std::int64_t>& shares :
           {std::vector<std::int64_t>{8}, {4, 4}, {2, 2, 2, 2}, {1, 3, 4}, {1, 7}})
        check_equal({.graph = graph, .shares = shares, .algorithm = algorithm}, false, kDouble);
    }
  // One replica gives the same numbers as batch norm over the whole batch.
  norms.synchronised_batch_norm = false;
  const ReplicaRun run{.graph = graph, .shares = {4, 4}}, whole{.graph = small_batch_norm_net(norms), .shares = {8}};
  CHECK(tensor_distance(graph.parameters(), train_replicas(run).weights, train_replicas(whole).weights) <= kDouble);
}

TEST_CASE("renorm over micro-batches: k replicas have the weights of one with the same groups", "[equality]") {
  ModelConfig norms;
  norms.batch_renorm = true;
  const Graph graph = small_batch_norm_net(norms);
  for (int k : {2, 4})
    check_equal({.graph = graph, .shares = std::vector<std::int64_t>(static_cast<std::size_t>(k), 4)}, true, kDouble);
}

TEST_CASE("a device out of the host's reach: gradients are staged, in time and back", "[equality]") {
  for (const std::string& algorithm : allreduce_names()) DYNAMIC_SECTION(algorithm) {
      const ReplicaRun far{.graph = small_cnn(), .shares = {2, 2, 2}, .algorithm = algorithm, .device = "discrete"};
      ReplicaRun near = far;
      near.device = "reference";
      const ReplicaResult staged = train_replicas(far), direct = train_replicas(near);
      check_one_model(staged);
      CHECK(staged.weights == direct.weights);
      CHECK(staged.gradients == direct.gradients);
    }
}

TEST_CASE("the test would notice: another group, another division, a lost replica", "[equality]") {
  const Graph graph = small_batch_norm_net();
  const ReplicaRun run{.graph = graph, .shares = {4, 4}};
  const ReplicaResult split = train_replicas(run);
  const ReplicaResult other_groups = train_replicas(on_one_replica(run, false));
  CHECK(tensor_distance(graph.parameters(), split.weights, other_groups.weights) > 1e-4);
  ReplicaRun half = run;
  half.shares = {4};
  const ReplicaResult alone = train_replicas(half);
  CHECK(tensor_distance(graph.parameters(), split.weights, alone.weights) > 1e-4);
}

TEST_CASE("dropout follows the sample, not its place: the order in a batch changes nothing", "[equality]") {
  ReplicaRun run{.graph = small_dropout_net(), .shares = {8}};
  const ReplicaResult straight = train_replicas(run);
  run.reversed = true;
  const ReplicaResult reversed = train_replicas(run);
  CHECK(tensor_distance(run.graph.parameters(), straight.weights, reversed.weights) <= kDouble);
}

TEST_CASE("bytes on the wire are those of the price list", "[equality]") {
  for (const std::string& algorithm : allreduce_names()) {
    if (algorithm == "mpi") continue;  // the library may add in any order
    for (int k = 1; k <= 4; ++k) DYNAMIC_SECTION(algorithm << " k=" << k) {
        const ReplicaRun run{.graph = small_digits_cnn(),
                             .shares = std::vector<std::int64_t>(static_cast<std::size_t>(k), 1),
                             .algorithm = algorithm,
                             .steps = 3};
        const ReplicaResult result = train_replicas(run);
        CHECK(result.sent_bytes == 3 * result.formula_bytes);
      }
  }
}

// Prints the distances beside the floor and checks them; checks weights if `bound_weights`.
void check_single(const Model& model, const ReplicaRun& run, bool groups, bool bound_weights) {
  const ReplicaResult split = train_replicas(run), whole = train_replicas(on_one_replica(run, groups));
  ReplicaRun reversed = on_one_replica(run, groups);
  reversed.reversed = true;
  const ReplicaResult floor = train_replicas(reversed);
  const ParameterSet& parameters = model.graph.parameters();
  check_one_model(split);
  const double gradients = tensor_distance(parameters, split.gradients, whole.gradients);
  const double weights = tensor_distance(parameters, split.weights, whole.weights);
  const double of_gradients = tensor_distance(parameters, floor.gradients, whole.gradients);
  const double of_weights = tensor_distance(parameters, floor.weights, whole.weights);
  std::printf("%-10s %-5s k=%d fp32: gradients %.1e (floor %.1e), weights after 20 steps %.1e (floor %.1e)\n",
              model.name, run.algorithm.c_str(), run.replicas(), gradients, of_gradients, weights, of_weights);
  CHECK(gradients <= test::rounding_bound(of_gradients));
  if (bound_weights) CHECK(weights <= test::rounding_bound(of_weights));
}

TEST_CASE("k replicas against one in fp32 on onednn, beside the rounding error", "[equality][onednn]") {
  std::vector<Model> all = models();
  all.push_back({"batch_norm", small_batch_norm_net()});
  all.push_back(small_sequence_models().front());
  for (const Model& model : all)
    for (const std::string& algorithm : allreduce_names())
      for (int k = 2; k <= 4; ++k) DYNAMIC_SECTION(model.name << " " << algorithm << " k=" << k) {
          const bool norm = std::string(model.name) == "batch_norm";
          check_single(model,
                       {.graph = model.graph,
                        .shares = std::vector<std::int64_t>(static_cast<std::size_t>(k), 4),
                        .algorithm = algorithm,
                        .device = "onednn",
                        .dtype = DType::f32},
                       norm, !norm);
        }
}

}  // namespace
}  // namespace echelon
