// Losses of two small language models' first steps against PyTorch's, from the same weights and texts:
// tests/tools/golden_language.py.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "optim/optimiser.hpp"
#include "tests/support/trainee.hpp"
#include "tests/unit/model/golden_language.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

// As in the script.
constexpr std::int64_t kBatch = 6, kPlaces = 7, kVocabulary = 11, kFeatures = 12, kUnits = 20;
constexpr double kLearningRate = 0.01;
constexpr std::uint64_t kSamples = 1000, kLabels = 2000;

// A whole number below 2^32.
std::uint64_t hashed_bits(std::uint64_t stream, std::uint64_t index) {
  constexpr std::uint64_t kWrap = 0xffffffffU;
  std::uint64_t x = ((index + 1) * 2654435761U + (stream + 1) * 2246822519U) & kWrap;
  x ^= x >> 15;
  x = (x * 739019U) & kWrap;
  return x ^ (x >> 13);
}

Graph language_model(const std::string& cell) {
  std::vector<LayerConfig> layers(4);
  const std::int64_t units[] = {kFeatures, kUnits, kUnits, kVocabulary};
  const std::string types[] = {"embedding", cell, cell, "dense"};
  for (std::size_t i = 0; i < 4; ++i) layers[i].type = types[i], layers[i].units = units[i];
  return build_layers(layers,
                      {.shape = {kPlaces}, .vocabulary = kVocabulary, .label = {kPlaces}, .classes = kVocabulary});
}

void set_weights(Trainee& trainee) {
  std::uint64_t stream = 0;
  for (const Parameter& p : trainee.arenas().parameters().all()) {
    const double width = p.shape.rank() > 1 ? 1 / std::sqrt(static_cast<double>(p.shape.row_elems())) : 0.125;
    for (std::int64_t i = 0; i < p.elems(); ++i)
      trainee.write_weight(
          p.begin + i,
          width * (static_cast<double>(hashed_bits(stream, static_cast<std::uint64_t>(i))) / 2147483648.0 - 1));
    ++stream;
  }
}

std::vector<double> losses_of(const std::string& cell, const TraineeOptions& options, std::size_t steps) {
  const Graph graph = language_model(cell);
  Trainee trainee(graph, kBatch, options);
  set_weights(trainee);
  OptimiserConfig config;
  config.learning_rate = kLearningRate, config.momentum = 0.9;
  Optimiser optimiser(config, trainee.arenas());
  PlainBatch batch = hashed_batch(form_of(graph), 0, kBatch, 1);
  constexpr double kTokens = kBatch * kPlaces;
  std::vector<double> losses;
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < batch.samples.size(); ++i) {
      batch.samples[i] = static_cast<double>(hashed_bits(kSamples + step, i) % kVocabulary);
      batch.labels[i] = static_cast<double>(hashed_bits(kLabels + step, i) % kVocabulary);
    }
    trainee.program().reset_losses();
    trainee.gradients(batch, kTokens, true);
    losses.push_back(trainee.program().losses().loss / kTokens);
    optimiser.begin_step(static_cast<std::int64_t>(step), kLearningRate);
    optimiser.apply({0, graph.parameters().elems()});
  }
  return losses;
}

}  // namespace

TEST_CASE("losses of language models' first steps are PyTorch's", "[model][golden]") {
  for (const golden::LanguageCase& row : golden::kLanguageModels) DYNAMIC_SECTION(row.cell) {
      const std::vector<double> exact = losses_of(row.cell, {}, row.losses.size());
      for (std::size_t step = 0; step < exact.size(); ++step)
        CHECK(exact[step] == Approx(row.losses[step]).epsilon(1e-9).margin(0));
      const std::vector<double> fast = losses_of(row.cell, {.device = "onednn", .dtype = DType::f32}, 5);
      for (std::size_t step = 0; step < fast.size(); ++step)
        CHECK(fast[step] == Approx(row.losses[step]).epsilon(1e-4).margin(0));
    }
}
