// Every layer: gradients of a whole loss through a small graph against finite differences, in double on `reference`.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "model/layers/list.hpp"
#include "tests/support/random.hpp"
#include "tests/support/trainee.hpp"

namespace echelon {
namespace {

using test::PlainBatch;
using test::Trainee;

LayerConfig layer(const std::string& type, const std::string& name = {}, const std::vector<std::string>& inputs = {}) {
  LayerConfig config;
  config.type = type;
  config.name = name;
  config.inputs = inputs;
  return config;
}

LayerConfig conv(std::int64_t channels, std::vector<std::int64_t> kernel, const std::string& name = {},
                 const std::vector<std::string>& inputs = {}) {
  LayerConfig config = layer("conv", name, inputs);
  config.channels = channels;
  config.kernel = std::move(kernel);
  return config;
}

LayerConfig pool(const std::string& type, std::vector<std::int64_t> kernel, std::vector<std::int64_t> stride,
                 std::vector<std::int64_t> padding, bool count_padding = false) {
  LayerConfig config = layer(type);
  config.kernel = std::move(kernel);
  config.stride = std::move(stride);
  config.padding = std::move(padding);
  config.count_padding = count_padding;
  return config;
}

LayerConfig dense(std::int64_t units, bool bias = true) {
  LayerConfig config = layer("dense");
  config.units = units;
  config.bias = bias;
  return config;
}

constexpr std::int64_t kClasses = 4;

struct Row {
  std::string name;
  Shape input;
  std::vector<LayerConfig> layers;  // a head (flatten, dense) follows where the last one is no dense layer of kClasses
};

std::vector<Row> rows() {
  LayerConfig general = conv(6, {3, 2});
  general.stride = {2, 1}, general.padding = {1, 2}, general.dilation = {1, 2}, general.groups = 2,
  general.bias = false;
  LayerConfig padded = conv(3, {3}, "body", {"first"});
  padded.padding = {1};
  LayerConfig same = conv(3, {3}, "first");
  same.padding = {1};
  const auto after_conv = [](const LayerConfig& tested) { return std::vector{conv(3, {2}), tested}; };
  return {
      {"conv", {2, 6, 5}, {conv(3, {3, 2})}},
      {"conv general", {2, 7, 6}, {conv(4, {2}), general}},
      {"max_pool", {2, 6, 7}, after_conv(pool("max_pool", {2, 3}, {1, 2}, {1, 0}))},
      {"avg_pool inside", {2, 6, 7}, after_conv(pool("avg_pool", {3, 2}, {2, 1}, {1}))},
      {"avg_pool all", {2, 6, 7}, after_conv(pool("avg_pool", {3}, {2}, {1}, true))},
      {"dense", {5, 1, 1}, {layer("flatten"), dense(6), dense(kClasses, false)}},
      {"relu", {2, 5, 4}, after_conv(layer("relu"))},
      {"tanh", {2, 5, 4}, after_conv(layer("tanh"))},
      {"sigmoid", {2, 5, 4}, after_conv(layer("sigmoid"))},
      {"batch_norm", {2, 5, 4}, after_conv(layer("batch_norm"))},
      {"batch_norm on samples", {2, 5, 4}, {layer("batch_norm"), layer("tanh")}},
      {"batch_norm of features", {6, 1, 1}, {layer("flatten"), dense(5), layer("batch_norm"), dense(kClasses)}},
      {"flatten of features", {5, 1, 1}, {layer("flatten"), dense(6), layer("flatten"), dense(kClasses)}},
      {"add", {2, 4, 4}, {same, padded, layer("add", "sum", {"body", "first"}), layer("tanh")}},
      {"add of a value to itself", {2, 4, 4}, {same, layer("add", "twice", {"first", "first"}), layer("tanh")}},
      {"two adds share a value",
       {2, 4, 4},
       {same, padded, layer("add", "a", {"first", "body"}), layer("tanh", "t", {"a"}),
        layer("add", "b", {"t", "first"}), layer("add", "c", {"b", "a"})}},
      {"image and features of one value",
       {2, 4, 4},
       {same, layer("flatten", "flat", {"first"}), layer("tanh", "bent", {"flat"}), layer("sigmoid", "s", {"first"}),
        layer("flatten", "flat2", {"s"}), layer("add", "sum", {"flat2", "bent"})}},
      {"features first, image later",
       {2, 4, 4},
       {same, layer("sigmoid", "s", {"first"}), layer("flatten", "flat2", {"s"}), layer("flatten", "flat", {"first"}),
        layer("tanh", "bent", {"flat"}), layer("add", "sum", {"flat2", "bent"}),
        layer("add", "again", {"sum", "flat"})}},
  };
}

Graph graph_of(const Row& row) {
  std::vector<LayerConfig> layers = row.layers;
  if (layers.back().type != "dense") {
    layers.push_back(layer("flatten"));
    layers.push_back(dense(kClasses));
  }
  return build_layers(layers, row.input, kClasses);
}

PlainBatch random_batch(const Row& row, std::int64_t n) {
  PlainBatch batch = test::hashed_batch(row.input, kClasses, 0, n, test::test_seed());
  for (std::size_t i = 0; i < batch.weights.size(); ++i) batch.weights[i] = i == 1 ? 0.0 : 1.0;
  return batch;
}

// (loss(w + h) - loss(w - h)) / 2h, summed over the micro-batches.
double difference(Trainee& trainee, const std::vector<PlainBatch>& micro, std::int64_t elem, double w, double h) {
  double loss[2] = {0, 0};
  for (int side = 0; side < 2; ++side) {
    trainee.write_weight(elem, side == 0 ? w + h : w - h);
    for (const PlainBatch& batch : micro) loss[side] += trainee.loss(batch);
  }
  trainee.write_weight(elem, w);
  return (loss[0] - loss[1]) / (2 * h);
}

void check_against_differences(Trainee& trainee, const std::vector<PlainBatch>& micro) {
  for (std::size_t m = 0; m < micro.size(); ++m) trainee.gradients(micro[m], 1.0, m == 0);
  const std::vector<double> gradients = trainee.read_gradients(), weights = trainee.read_weights();
  double largest = 0;
  for (double g : gradients) largest = std::max(largest, std::fabs(g));
  for (const Parameter& p : trainee.arenas().parameters().all()) {
    if (p.kind != ParameterKind::weight) continue;
    for (std::int64_t pick : test::random_integers(std::min<std::size_t>(6, static_cast<std::size_t>(p.elems())),
                                                   p.begin, p.end() - 1, p.name)) {
      const auto at = static_cast<std::size_t>(pick);
      // A step may cross the kink of a maximum; a smaller one then does not, while a wrong gradient stays wrong.
      double found = 0;
      bool agrees = false;
      for (double h : {1e-5, 1e-6, 1e-7}) {
        if (agrees) break;
        found = difference(trainee, micro, pick, weights[at], h);
        agrees = std::fabs(found - gradients[at]) < 1e-12 / h + 1e-6 * std::max(largest, 1.0);
      }
      INFO(p.name << "[" << pick - p.begin << "]: backward " << gradients[at] << ", differences " << found);
      CHECK(agrees);
    }
  }
}

TEST_CASE("every layer of the list has a row", "[layers]") {
  std::set<std::string> tested;
  for (const Row& row : rows())
    for (const LayerConfig& config : row.layers) tested.insert(config.type);
  for (const std::string& type : layer_types()) CHECK(tested.count(type) == 1);
}

TEST_CASE("gradients of every layer agree with finite differences", "[layers]") {
  for (const Row& row : rows()) DYNAMIC_SECTION(row.name) {
      Trainee trainee(graph_of(row), 3, {.seed = test::test_seed()});
      check_against_differences(trainee, {random_batch(row, 3)});
    }
}

TEST_CASE("accumulated gradients agree with finite differences of the summed loss", "[layers]") {
  for (const Row& row : rows()) DYNAMIC_SECTION(row.name) {
      Trainee trainee(graph_of(row), 2, {.seed = test::test_seed()});
      const PlainBatch all = test::hashed_batch(row.input, kClasses, 0, 6, test::test_seed());
      check_against_differences(trainee, {part_of(all, 0, 2), part_of(all, 2, 2), part_of(all, 4, 2)});
    }
}

}  // namespace
}  // namespace echelon
