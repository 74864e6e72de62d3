// SPDX-License-Identifier: Apache-2.0
// Losses with a label for every pixel: k replicas equal one, in double, whichever pixels do not count, and a model that
// is split by rows or in stages has the weights of the whole one.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "model/build.hpp"
#include "tests/support/one_model.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/space_runs.hpp"

namespace echelon {
namespace {

using namespace test;
using Catch::Matchers::Contains;

// Two convolutions that keep the size of the image.
std::vector<LayerConfig> layers_to(std::int64_t channels) {
  LayerConfig first;
  first.type = "conv", first.channels = 6, first.kernel = {3, 3}, first.padding = {1, 1};
  LayerConfig bend;
  bend.type = "relu";
  LayerConfig last = first;
  last.channels = channels;
  return {first, bend, last};
}

SampleForm form_with(std::int64_t classes, const Shape& label) {
  return {.shape = {2, 8, 6}, .label = label, .classes = classes, .dense = classes > 0};
}

Graph dense_net(std::int64_t classes, double smoothing = 0) {
  return build_layers(layers_to(classes), form_with(classes, {8, 6}), {"softmax", smoothing});
}
// A yes or no for every pixel, and two real numbers for every pixel.
Graph yes_or_no_net() { return build_layers(layers_to(1), form_with(2, {8, 6}), {"bce", 0}); }
Graph net_with(const std::string& loss) {
  return build_layers(layers_to(loss == "hinge" ? 1 : 3), form_with(loss == "hinge" ? 2 : 3, {8, 6}), {loss});
}
Graph field_net() { return build_layers(layers_to(2), form_with(0, {2, 8, 6}), {"mse", 0}); }

std::vector<NamedGraph> nets() {
  return {{"softmax", dense_net(5)},   {"smoothed", dense_net(3, 0.1)}, {"bce", yes_or_no_net()},
          {"mse", field_net()},        {"focal", net_with("focal")},    {"dice", net_with("dice")},
          {"hinge", net_with("hinge")}};
}

}  // namespace

TEST_CASE("a label for every pixel: k replicas have the weights of one, in double", "[equality][dense]") {
  for (const NamedGraph& net : nets())
    for (const std::vector<std::int64_t>& shares :
         {std::vector<std::int64_t>{4}, std::vector<std::int64_t>{2, 2}, std::vector<std::int64_t>{1, 1, 1, 1},
          std::vector<std::int64_t>{3, 1}})
      for (const bool holes : {false, true}) DYNAMIC_SECTION(net.name << " k=" << shares.size() << " holes " << holes) {
          const ReplicaRun run{.graph = net.graph, .shares = shares, .holes = holes};
          const ReplicaResult split = train_replicas(run), whole = train_replicas(on_one_replica(run, false));
          check_one_model(split);
          CHECK(tensor_distance(run.graph.parameters(), split.weights, whole.weights) <= 1e-9);
        }
}

TEST_CASE("a label for every pixel: rows of images and stages have the weights of whole ones",
          "[split][space][dense]") {
  for (const NamedGraph& net : nets()) DYNAMIC_SECTION(net.name) {
      for (const int shards : {2, 4}) check_split(space_of(net.graph, shards, {4, 4}, 2));
      SplitRun run = space_of(net.graph, 2, {4}, 2);
      run.parallel.pipeline = 2;
      check_split(run);
    }
}

TEST_CASE("an output that has no class for every pixel is refused with the shape it needs", "[dense]") {
  CHECK_THROWS_WITH(build_layers(layers_to(4), form_with(5, {8, 6})), Contains("(4, 8, 6)") && Contains("(5, 8, 6)"));
  CHECK_THROWS_WITH(build_layers(layers_to(5), form_with(5, {4, 6})), Contains("end with a layer of (5, 4, 6)"));
  CHECK_THROWS_AS(build_layers(layers_to(1), form_with(0, {2, 8, 6})), ConfigError);
  CHECK_THROWS_WITH(build_layers(layers_to(2), form_with(0, {2, 8, 6}), {"dice"}), Contains("needs classes"));
  CHECK_THROWS_WITH(build_layers(layers_to(3), form_with(3, {8, 6}), {"hinge"}), Contains("or 2 classes"));
  CHECK_THROWS_WITH(build_layers(layers_to(3), form_with(3, {8, 6}), {"mae"}), Contains("real numbers"));
  LayerConfig flat, head;
  flat.type = "flatten", head.type = "dense", head.units = 3;
  CHECK_THROWS_WITH(build_layers({flat, head}, labelled({2, 8, 6}, 3), {"dice"}), Contains("every place"));
}

}  // namespace echelon
