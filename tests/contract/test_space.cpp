// SPDX-License-Identifier: Apache-2.0
// Images split by rows must end with the weights of the unsplit model, in double.
#include <catch2/catch.hpp>
#include <functional>

#include "comm/collective/algorithms.hpp"
#include "tests/support/image_models.hpp"
#include "tests/support/random.hpp"
#include "tests/support/space_runs.hpp"

namespace echelon {
namespace {

using namespace test;

std::vector<NamedGraph> image_models() {
  return {{"cnn_32_64", tall_cnn()},        {"resnet20", tall_resnet20()},
          {"inception", small_inception()}, {"batch_norm", tall_batch_norm_net()},
          {"dropout", tall_dropout_net()},  {"windows", small_windows()},
          {"torn rows", small_torn_rows()}, {"volumes", small_volumes()}};
}

TEST_CASE("images split by rows have the weights of whole ones, in double", "[split][space][sampled]") {
  for (const NamedGraph& model : image_models())
    for (const auto& [spatial_shards, replicas] : sampled(kGroupsAndReplicas, 3, model.name))
      DYNAMIC_SECTION(model.name << " s=" << spatial_shards << " k=" << replicas) {
        const SplitResult split = check_split(
            space_of(model.graph, spatial_shards, std::vector<std::int64_t>(static_cast<std::size_t>(replicas), 4), 2));
        CHECK(split.halo_bytes > 0);
      }
}

TEST_CASE("stages of rows, rows of shards", "[split][space]") {
  for (const NamedGraph& model : image_models()) DYNAMIC_SECTION(model.name) {
      SplitRun run = space_of(model.graph, 2, {6}, 3);
      run.parallel.pipeline = 2;
      check_split(run);
      run = space_of(model.graph, 2, {4, 4}, 2);
      run.parallel.tensor = 2;
      run.replicas.steps = 5;
      check_split(run);
    }
}

TEST_CASE("rows: batch norm over all replicas too, and corrected by running statistics", "[split][space]") {
  ModelConfig norms;
  norms.synchronised_batch_norm = true;
  check_split(space_of(tall_batch_norm_net(norms), 2, {4, 4}, 1), false);
  norms = {};
  norms.batch_renorm = true;
  check_split(space_of(tall_batch_norm_net(norms), 3, {4}, 2));
}

TEST_CASE("rows: every way of summing gradients", "[split][space]") {
  const auto check = [](const std::string& what, const std::function<void(ReplicaRun&)>& change) {
    DYNAMIC_SECTION(what) {
      SplitRun run = space_of(tall_batch_norm_net(), 2, {4, 4}, 2);
      run.replicas.steps = 5;
      change(run.replicas);
      check_split(run);
    }
  };
  for (const std::string& algorithm : allreduce_names())
    check(algorithm, [&](ReplicaRun& run) { run.algorithm = algorithm; });
  check("lossless", [](ReplicaRun& run) { run.codec = "lossless"; });
  check("no overlap", [](ReplicaRun& run) { run.overlap = Overlap::none; });
  check("adam", [](ReplicaRun& run) { run.rule = "adam"; });
}

TEST_CASE("rows: norms over the model, of stages too", "[split][space]") {
  for (const int stages : {1, 2})
    for (const char* rule : {"sgd", "lars", "lamb"}) DYNAMIC_SECTION(rule << " p=" << stages) {
        SplitRun run = space_of(tall_cnn(), 2, {4, 4}, 2);
        run.parallel.pipeline = stages;
        run.replicas.rule = rule;
        if (run.replicas.rule == "sgd") run.replicas.clip_norm = 0.05;
        check_split(run);
      }
}

TEST_CASE("rows: unequal shares, samples of weight 0", "[split][space]") {
  SplitRun run = space_of(tall_cnn(), 3, {4, 2}, 2);
  run.replicas.holes = true;
  check_split(run, false);
  run = space_of(tall_batch_norm_net(), 2, {6, 6}, 3);
  run.replicas.device = "discrete";
  check_split(run);
}

// Such a device computes the inner rows while the others travel.
TEST_CASE("rows: memory out of the host's reach", "[split][space]") {
  for (const NamedGraph& model : image_models())
    for (const int spatial_shards : {2, 3, 4})
      for (const int stages : {1, 2}) DYNAMIC_SECTION(model.name << " s=" << spatial_shards << " p=" << stages) {
          SplitRun run = space_of(model.graph, spatial_shards, {4}, 2);
          run.parallel.pipeline = stages;
          run.replicas.device = "discrete";
          run.replicas.steps = 5;
          check_split(run);
        }
}

}  // namespace
}  // namespace echelon
