// SPDX-License-Identifier: Apache-2.0
// Frozen parameters are kept apart from trained ones, no op computes their gradients, and batch norms that are frozen
// as a whole are fixed linear maps.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "optim/optimiser.hpp"
#include "tests/support/random.hpp"
#include "tests/support/trainer.hpp"

using namespace echelon;
using namespace echelon::test;
using Catch::Contains;

namespace {

LayerConfig of(const std::string& type, std::int64_t size = 0) {
  LayerConfig layer;
  layer.type = type;
  if (type == "conv") layer.channels = size, layer.kernel = {3}, layer.padding = {1};
  if (type == "dense") layer.units = size;
  return layer;
}

Graph model_with(const std::vector<std::string>& freeze, bool relu = true) {
  std::vector<LayerConfig> layers = {of("conv", 3),    of("batch_norm"), of("relu"),    of("conv", 4),
                                     of("batch_norm"), of("flatten"),    of("dense", 5)};
  if (!relu) layers.erase(layers.begin() + 2);
  return build_layers(layers, labelled({2, 4, 5}, 5), {}, freeze);
}

int count_of(Trainer& trainer, OpKind kind) {
  int count = 0;
  for (const OpReport& op : trainer.program().ops()) count += op.spec.kind == kind ? 1 : 0;
  return count;
}

// Returns (loss(w + h) - loss(w - h)) / 2h for the weight at `elem` of the arena.
double slope(Trainer& trainer, const PlainBatch& batch, std::int64_t elem) {
  constexpr double h = 1e-5;
  const double w = trainer.read_weights()[static_cast<std::size_t>(elem)];
  trainer.write_weight(elem, w + h);
  const double above = trainer.loss(batch);
  trainer.write_weight(elem, w - h);
  const double below = trainer.loss(batch);
  trainer.write_weight(elem, w);
  return (above - below) / (2 * h);
}

}  // namespace

TEST_CASE("frozen parameters have no gradient, no place among the trained ones, and no op of their own", "[freeze]") {
  const Graph whole = model_with({}), graph = model_with({"conv1", "batch_norm1", "*.bias"});
  CHECK(graph.parameters().elems() + graph.parameters().frozen_elems() == whole.parameters().elems());
  CHECK(graph.parameters().weight_elems() == whole.parameters().weight_elems());
  for (const Parameter& p : graph.parameters().frozen())
    CHECK((p.name.starts_with("conv1.") || p.name.starts_with("batch_norm1.") || p.name.ends_with(".bias")));
  Trainer all(whole, 3), some(graph, 3);
  CHECK(count_of(all, OpKind::conv_backward_weights) == 2);
  CHECK(count_of(some, OpKind::conv_backward_weights) == 1);
  CHECK(count_of(some, OpKind::conv_backward_data) == 0);  // nothing below is trained
  CHECK_THROWS(some.arenas().gradient(graph.parameters().find("conv1.weight")));

  const PlainBatch batch = hashed_batch(form_of(graph), 0, 3, test_seed());
  const Tensor weight = some.arenas().weight(graph.parameters().find("conv1.weight"));
  const std::vector<double> before = some.read(weight);
  OptimiserConfig config;
  config.weight_decay = 0.1, config.rule = "adamw";
  Optimiser optimiser(config, some.arenas());
  CHECK(optimiser.state_bytes() == 2 * sizeof(double) * static_cast<std::size_t>(graph.parameters().elems()));
  some.gradients(batch, 3, true);
  optimiser.begin_step(0, 0.1);
  optimiser.apply({0, some.arenas().elems()});
  CHECK(some.read(weight) == before);
}

TEST_CASE("a batch norm that is frozen as a whole is a fixed linear map, whose derivative is right", "[freeze]") {
  const bool relu = GENERATE(false, true);
  CAPTURE(relu, test_seed());
  const Graph graph = model_with({"batch_norm*"}, relu);
  Trainer trainer(graph, 3), evaluated(graph, 3, {.training = false});
  for (Trainer* one : {&trainer, &evaluated})
    for (const char* name : {"weight", "bias", "running_mean", "running_var"}) {
      const Tensor of_norm = one->arenas().weight(graph.parameters().find(std::string("batch_norm1.") + name));
      std::vector<double> values = random_values(static_cast<std::size_t>(of_norm.elems()), name);
      if (std::string(name) == "running_var")
        for (double& value : values) value += 1.5;
      one->arenas().device().to_device(of_norm.data, values.data(), of_norm.bytes());
      one->arenas().touch();
    }
  const PlainBatch batch = hashed_batch(form_of(graph), 0, 3, test_seed());
  CHECK(trainer.loss(batch) == Approx(evaluated.loss(batch)).epsilon(1e-12));
  trainer.gradients(batch, 1, true);
  const std::vector<double> gradients = trainer.read_gradients();
  const Parameter& conv = graph.parameters()[graph.parameters().find("conv1.weight")];
  for (std::int64_t elem = conv.begin; elem < conv.end(); elem += 7)
    CHECK(gradients[static_cast<std::size_t>(elem)] == Approx(slope(trainer, batch, elem)).margin(1e-7));
  CHECK(count_of(trainer, OpKind::norm_statistics) == 0);
}

TEST_CASE("patterns that match nothing or every weight are refused with the nearest name", "[freeze]") {
  ModelConfig model;
  model.zoo = "digits_cnn";
  const SampleForm form = labelled({1, 8, 8}, 10);
  const auto refused = [&](const std::vector<std::string>& freeze, const std::string& says) {
    model.freeze = freeze;
    CHECK_THROWS_WITH(build_model(model, form), Contains(says));
  };
  refused({"conv1", "cnov2"}, "did you mean 'conv2'");
  refused({"relu1"}, "layer or parameter 'relu1'");
  refused({"*"}, "nothing is left to train");
  model.freeze = {"conv?", "dense1.bias"};
  const Graph graph = build_model(model, form);
  CHECK(frozen_text(graph.parameters()) == "conv1, conv2, dense1.bias: 4,864 of 38,282 parameters");
}
