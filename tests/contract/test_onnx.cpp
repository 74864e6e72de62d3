// SPDX-License-Identifier: Apache-2.0
// Exports every layer and every ready-made model as ONNX: checks which have a form, and that onnxruntime computes the
// same as this program.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "checkpoint/onnx/model.hpp"
#include "tests/support/layer_rows.hpp"
#include "tests/support/onnx_runtime.hpp"
#include "tests/support/random.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/trainer.hpp"
#include "tests/support/zoo_forms.hpp"

namespace echelon {
namespace {

using test::OnnxCases;
using test::OnnxValues;
using test::PlainBatch;
using test::Trainer;

constexpr const char* kWithoutForm = "lrn even";

onnx::ReadParameter zeros() {
  return [](const Parameter& parameter) { return std::vector<float>(static_cast<std::size_t>(parameter.elems())); };
}

TEST_CASE("every layer and every ready-made model has an ONNX form but a local response norm of even size", "[onnx]") {
  for (const test::LayerRow& row : test::layer_rows()) DYNAMIC_SECTION(row.name) {
      if (row.name != kWithoutForm) {
        CHECK(!onnx::serialise(onnx::make_file(test::graph_of(row), zeros())).empty());
        continue;
      }
      test::LayerRow placed = row;
      for (LayerConfig& layer : placed.layers) layer.where = "models/a.toml:" + std::to_string(layer.size + 3);
      CHECK_THROWS_AS(onnx::make_file(test::graph_of(placed), zeros()), ConfigError);
      CHECK_THROWS_WITH(
          onnx::make_file(test::graph_of(placed), zeros()),
          Catch::StartsWith("models/a.toml:7: layer 'lrn1' (lrn): size = 4: ") && Catch::Contains("odd size"));
    }
  for (const std::string& name : zoo_names()) DYNAMIC_SECTION(name) {
      SampleForm form = zoo_form(name);
      if (form.shape.rank() >= 3 && form.shape[1] > 96) form = test::zoo_form_of_side(name, 96);
      const onnx::File file = onnx::make_file(build_zoo(name, form), zeros());
      CHECK(file.outputs.front().name == "outputs");
      CHECK(file.inputs.front().name == "samples");
    }
}

// Changes statistics and parameters of norms from the values with which training begins.
void change_weights(Trainer& trainer) {
  for (const Parameter& p : trainer.arenas().parameters().all()) {
    const std::vector<double> draws = test::random_values(static_cast<std::size_t>(p.elems()), p.name);
    const std::vector<double> weights = trainer.read_weights();
    for (std::int64_t e = p.begin; e < p.end(); ++e) {
      const double changed = weights[static_cast<std::size_t>(e)] + 0.4 * draws[static_cast<std::size_t>(e - p.begin)];
      trainer.write_weight(e, p.name.ends_with("running_var") ? std::fabs(changed) + 0.1 : changed);
    }
  }
}

onnx::ReadParameter weights_of(const Trainer& trainer) {
  return [weights = trainer.read_weights()](const Parameter& p) {
    return std::vector<float>(weights.begin() + p.begin, weights.begin() + p.end());
  };
}

// A model with the outputs that it computes in double.
struct Modelled {
  Modelled(const Graph& graph, std::int64_t n)
      : trainer(graph, n, {.seed = test::test_seed(), .training = false, .keep_values = true}) {
    change_weights(trainer);
  }

  OnnxValues outputs(const PlainBatch& batch) {
    trainer.loss(batch);
    const Tensor found = trainer.program().value("loss");
    return {"f32", found.shape, trainer.read(found)};
  }
  void add(OnnxCases& cases, const std::string& name, const std::string& file, const PlainBatch& given,
           const PlainBatch& seen) {
    const Graph& graph = trainer.graph();
    const auto value = [&](const char* input, const std::vector<double>& values) -> OnnxValues {
      const Value& of = graph.values()[static_cast<std::size_t>(graph.find(input))];
      return {of.type == ValueType::real ? "f32" : "i32", of.shape.prepended(given.n()), values};
    };
    std::map<std::string, OnnxValues> inputs = {{"samples", value("samples", given.samples)}};
    if (!given.lengths.empty()) inputs["lengths"] = value("lengths", given.lengths);
    if (!given.target.empty()) inputs["target"] = value("target", given.target);
    cases.add(name, file, inputs, outputs(seen));
  }
  void write(const std::string& file, const onnx::Options& options = {}) const {
    write_file_whole(file, onnx::serialise(onnx::make_file(trainer.graph(), weights_of(trainer), options)));
  }

  Trainer trainer;
};

LayerConfig recurrent(const std::string& type, std::int64_t units, bool carry) {
  LayerConfig config;
  config.type = type;
  config.units = units;
  config.carry = carry;
  return config;
}

// Adds two batches of a text whose rows continue.
void add_carried(OnnxCases& cases, const std::string& file) {
  SampleForm form{.shape = {5}, .vocabulary = 7, .label = {5}, .classes = 7};
  form.stream = true;
  Modelled model(build_layers({recurrent("embedding", 3, false), recurrent("lstm", 4, true), recurrent("gru", 5, true),
                               recurrent("dense", 7, false)},
                              form),
                 2);
  model.write(file);
  for (const std::int64_t first : {0, 2}) {
    const PlainBatch batch = test::hashed_batch(form, first, 2, test::test_seed());
    model.add(cases, "carried states", file, batch, batch);
  }
}

// Adds sequences of different lengths as they are stored; the program gets what the loader makes of them.
void add_normalised(OnnxCases& cases, const std::string& file) {
  SampleForm form = labelled({4, 3}, 5);
  form.lengths = true;
  LayerConfig flat;  // reads padded places too
  flat.type = "flatten";
  Modelled model(build_layers({flat, recurrent("dense", 5, false)}, form), 3);
  const PlainBatch stored = test::hashed_batch(form, 0, 3, test::test_seed());
  const std::vector<double> mean = {0.5, -1, 0.25}, deviation = {2, 0.3, 1};
  PlainBatch seen = stored;
  for (std::size_t i = 0; i < seen.samples.size(); ++i) {
    const bool used = static_cast<double>(i / 3 % 4) < seen.lengths[i / 12];
    seen.samples[i] = used ? (stored.samples[i] - mean[i % 3]) / deviation[i % 3] : 0;
  }
  model.write(file, {.normalisation = {.mean = mean, .std = deviation}});
  model.add(cases, "normalised sequences", file, stored, seen);
}

// Adds images of two channels as they are stored.
void add_normalised_images(OnnxCases& cases, const std::string& file) {
  const SampleForm form = labelled({2, 3, 5}, 4);
  LayerConfig flat;
  flat.type = "flatten";
  Modelled model(build_layers({flat, recurrent("dense", 4, false)}, form), 3);
  const PlainBatch stored = test::hashed_batch(form, 0, 3, test::test_seed());
  const std::vector<double> mean = {0.5, -0.25}, deviation = {0.25, 1.5};
  PlainBatch seen = stored;
  for (std::size_t i = 0; i < seen.samples.size(); ++i)
    seen.samples[i] = (stored.samples[i] - mean[i / 15 % 2]) / deviation[i / 15 % 2];
  model.write(file, {.normalisation = {.mean = mean, .std = deviation}});
  model.add(cases, "normalised images", file, stored, seen);
}

TEST_CASE("onnxruntime computes every layer as this program does", "[onnx][python]") {
  if (test::skip_without(test::has_onnx_runtime(), test::Lacks::package,
                         "needs the Python packages onnx and onnxruntime"))
    return;
  const test::TempFolder folder;
  OnnxCases cases;
  std::size_t count = 3;
  for (const test::LayerRow& row : test::layer_rows()) {
    if (row.name == kWithoutForm) continue;
    const std::string file = folder / (row.name + ".onnx");
    Modelled model(test::graph_of(row), 3);
    model.write(file);
    for (const std::int64_t first : {0, 3}) {
      const PlainBatch batch = test::hashed_batch(row.form, first, 3, test::test_seed());
      model.add(cases, row.name, file, batch, batch);
    }
    ++count;
  }
  add_carried(cases, folder / "carried.onnx");
  add_normalised(cases, folder / "normalised.onnx");
  add_normalised_images(cases, folder / "images.onnx");
  const auto distances = cases.run();
  CHECK(distances.size() == count);
  for (const auto& [name, distance] : distances) {
    INFO(name);
    CHECK(distance <= 1e-5);
  }
}

}  // namespace
}  // namespace echelon
