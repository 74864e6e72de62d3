// SPDX-License-Identifier: Apache-2.0
// Compares losses of the first training steps with PyTorch's, from the same weights and samples
// (tests/tools/golden_models.py).
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "model/build.hpp"
#include "model/zoo/zoo.hpp"
#include "optim/optimiser.hpp"
#include "tests/support/rounding.hpp"
#include "tests/support/trainer.hpp"
#include "tests/unit/model/golden_models.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

// The same values as in the script.
constexpr std::int64_t kBatch = 8, kClasses = 10;
constexpr std::int64_t kPlaces = 7, kVocabulary = 11, kFeatures = 12, kUnits = 20;  // sizes in the language models
constexpr double kLearningRate = 0.01;
constexpr std::uint64_t kSamples = 1000, kLabels = 2000;

// Returns a whole number below 2^32.
std::uint64_t hashed_bits(std::uint64_t stream, std::uint64_t index) {
  constexpr std::uint64_t kWrap = 0xffffffffU;
  std::uint64_t x = ((index + 1) * 2654435761U + (stream + 1) * 2246822519U) & kWrap;
  x ^= x >> 15;
  x = (x * 739019U) & kWrap;
  return x ^ (x >> 13);
}

// Returns a number in [-1, 1).
double hashed(std::uint64_t stream, std::uint64_t index) {
  return static_cast<double>(hashed_bits(stream, index)) / 2147483648.0 - 1;
}

Graph language_model(const std::string& cell) {
  std::vector<LayerConfig> layers(4);
  const std::int64_t units[] = {kFeatures, kUnits, kUnits, kVocabulary};
  const std::string types[] = {"embedding", cell, cell, "dense"};
  for (std::size_t i = 0; i < 4; ++i) layers[i].type = types[i], layers[i].units = units[i];
  return build_layers(layers,
                      {.shape = {kPlaces}, .vocabulary = kVocabulary, .label = {kPlaces}, .classes = kVocabulary});
}

// Models that read model.widths, on samples of the same shapes as in the script.
Graph graph_of_widths(const std::string& name) {
  ModelConfig config;
  config.zoo = name.substr(0, name.find('_'));
  if (name == "cosmoflow") {
    config.widths = {4, 6}, config.dropout = 0;
    return build_model(config, {.shape = {2, 9, 9, 9}, .label = {4}});
  }
  config.widths = {4, 6, 8};
  const Shape places = name == "unet" ? Shape{8, 12} : Shape{4, 8, 4};
  return build_model(config, {.shape = places.prepended(2), .label = places, .classes = 3, .dense = true});
}

Graph graph_of(const std::string& name) {
  if (name == "lstm" || name == "gru") return language_model(name);
  if (name.starts_with("unet") || name == "cosmoflow") return graph_of_widths(name);
  const Shape sample = name == "cnn_32_64" ? Shape{1, 12, 12} : Shape{3, 8, 8};
  return build_zoo(name, labelled(sample, kClasses));
}

void set_weights(Trainer& trainer) {
  std::uint64_t stream = 0;
  for (const Parameter& p : trainer.arenas().parameters().all()) {
    if (p.kind != ParameterKind::weight) continue;
    const bool matrix = p.shape.rank() > 1, scale = !matrix && p.name.ends_with(".weight");
    const double width = matrix ? 1 / std::sqrt(static_cast<double>(p.shape.row_elems())) : 0.125;
    for (std::int64_t i = 0; i < p.elems(); ++i)
      trainer.write_weight(p.begin + i, (scale ? 1.0 : 0.0) + width * hashed(stream, static_cast<std::uint64_t>(i)));
    ++stream;
  }
}

PlainBatch batch_of(const SampleForm& form, std::uint64_t step) {
  PlainBatch batch = hashed_batch(form, 0, kBatch, 1);
  const auto below = [&](std::uint64_t stream, std::size_t i, std::int64_t end) {
    return static_cast<double>(hashed_bits(stream + step, i) % static_cast<std::uint64_t>(end));
  };
  for (std::size_t i = 0; i < batch.samples.size(); ++i)
    batch.samples[i] = form.tokens() ? below(kSamples, i, form.vocabulary) : hashed(kSamples + step, i);
  for (std::size_t i = 0; i < batch.labels.size(); ++i)
    batch.labels[i] = form.classes > 0 ? below(kLabels, i, form.classes) : hashed(kLabels + step, i);
  return batch;
}

std::vector<double> losses_of(const std::string& name, const TrainerOptions& options, std::size_t steps) {
  const Graph graph = graph_of(name);
  Trainer trainer(graph, kBatch, options);
  set_weights(trainer);
  OptimiserConfig config;
  config.learning_rate = kLearningRate, config.momentum = 0.9;
  Optimiser optimiser(config, trainer.arenas());
  const SampleForm form = form_of(graph);
  const auto labels = static_cast<double>(kBatch * form.label.elems());
  std::vector<double> losses;
  for (std::size_t step = 0; step < steps; ++step) {
    trainer.program().reset_losses();
    trainer.gradients(batch_of(form, step), labels, true);
    losses.push_back(trainer.program().losses().loss / labels);
    optimiser.begin_step(static_cast<std::int64_t>(step), kLearningRate);
    optimiser.apply({0, graph.parameters().elems()});
  }
  return losses;
}

}  // namespace

TEST_CASE("losses of the first steps are PyTorch's", "[model][golden]") {
  for (const golden::ModelCase& row : golden::kModels) DYNAMIC_SECTION(row.name) {
      const std::vector<double> exact = losses_of(row.name, {}, row.losses.size());
      for (std::size_t step = 0; step < exact.size(); ++step)
        CHECK(exact[step] == Approx(row.losses[step]).epsilon(1e-9).margin(0));
      // Plain loops in f32 round as often, but in another order.
      const std::size_t few = 5;
      const std::vector<double> plain = losses_of(row.name, {.dtype = DType::f32}, few);
      const std::vector<double> fast = losses_of(row.name, {.device = "onednn", .dtype = DType::f32}, few);
      double floor = 0;
      for (std::size_t step = 0; step < few; ++step)
        floor = std::max(floor, std::abs(plain[step] / row.losses[step] - 1));
      CHECK(floor < 1e-3);
      for (std::size_t step = 0; step < few; ++step)
        CHECK(fast[step] == Approx(row.losses[step]).epsilon(test::rounding_bound(floor)).margin(0));
    }
}
