// SPDX-License-Identifier: Apache-2.0
// A label for every pixel: how it is read, what it weighs, and what is refused.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "checkpoint/trained_data.hpp"
#include "data/class_mix.hpp"
#include "data/loader.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;

constexpr std::int64_t kImages = 5, kRows = 2, kColumns = 3, kPlaces = kRows * kColumns;

// Classes 0 to 3 and 255 for "unknown".
std::vector<std::uint8_t> some_labels() {
  std::vector<std::uint8_t> labels;
  for (std::int64_t i = 0; i < kImages * kPlaces; ++i)
    labels.push_back(i % 7 == 3 ? 255 : static_cast<std::uint8_t>(i % 5 % 3));
  return labels;
}

void write(const std::string& path, const std::vector<std::uint8_t>& labels, const Shape& shape) {
  const std::vector<std::uint8_t> pixels(static_cast<std::size_t>(kImages * kPlaces), 7);
  h5::Writer writer(path);
  writer.attribute("classes", std::int64_t{4});
  writer.write_all("samples", DType::u8, {kImages, 1, kRows, kColumns}, pixels.data());
  writer.write_all("labels", DType::u8, shape, labels.data());
  writer.publish();
}

const Batch& whole_batch(Loader& loader) { return loader.next(); }

std::unique_ptr<SamplePlan> plan_of(const Dataset& data) {
  DataConfig config;
  config.sharding = Sharding::record;
  config.shuffle = false;
  config.ragged = Ragged::zero_weight;
  return std::make_unique<SamplePlan>(plan_request(data, config, {kImages + 4}, 0));
}

ModelConfig model_with(std::vector<std::int64_t> ignored, std::vector<double> weights = {}, double exponent = 0) {
  ModelConfig model;
  model.labels = {
      .ignore_label = std::move(ignored), .class_weights = std::move(weights), .inverse_frequency = exponent};
  return model;
}

// The labels and weights that a model is given, with the counts of the batch.
void check_batch(const Dataset& data, const std::vector<std::uint8_t>& stored) {
  const auto plan = plan_of(data);
  Loader loader(data, *plan, {.dtype = DType::f64});
  const Batch& batch = whole_batch(loader);
  const auto* labels = static_cast<const std::int32_t*>(batch.labels);
  const auto* weights = static_cast<const double*>(batch.weights);
  std::vector<double> counts(data.label_weights.counts());
  double counting = 0;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const bool ignored = stored[i] == 255;
    CHECK(labels[i] == (ignored ? 0 : stored[i]));
    CHECK(weights[i] == (ignored ? 0 : data.label_weights.of(stored[i])));
    if (ignored) continue;
    counts[data.label_weights.count_of(stored[i])] += 1;
    counting += 1;
  }
  CHECK(batch.weight == counting);
  for (std::int64_t i = std::ssize(stored); i < batch.n * kPlaces; ++i) {  // samples that fill up the last step
    CHECK(labels[i] < data.classes);
    CHECK(weights[i] == 0);
  }
  REQUIRE(batch.label_counts != nullptr);
  CHECK(std::vector<double>(batch.label_counts, batch.label_counts + counts.size()) == counts);
}

}  // namespace

TEST_CASE("a label for every pixel is read with its weight", "[data][dense]") {
  const test::Folder folder;
  const std::string path = folder / "scenes.h5";
  const std::vector<std::uint8_t> stored = some_labels();
  write(path, stored, {kImages, kRows, kColumns});
  Dataset data = open_dataset(path);
  CHECK(data.has_dense_classes());
  CHECK(data.form() == SampleForm{.shape = {1, 2, 3}, .label = {2, 3}, .classes = 4, .dense = true});

  SECTION("labels that do not count") { demand_labels(data, model_with({255})); }
  SECTION("weights of classes") { demand_labels(data, model_with({255}, {0.5, 2, 1, 4})); }
  SECTION("by inverse frequency") {
    const ModelConfig model = model_with({255}, {}, 0.5);
    demand_labels(data, model);
    data.label_sample = std::make_shared<const LabelSample>(data);
    weigh_by_frequency(data, model);
    std::vector<std::int64_t> counts(4);
    for (const std::uint8_t label : stored)
      if (label != 255) ++counts[label];
    REQUIRE(counts[3] == 0);
    CHECK(data.label_sample->class_counts() == std::vector<std::int64_t>(counts.begin(), counts.end() - 1));
    const std::vector<double>& weights = data.label_weights.by_class;
    double mean = 0;
    for (std::size_t c = 0; c < 4; ++c) mean += weights[c] * static_cast<double>(counts[c]);
    CHECK(mean == Approx(static_cast<double>(counts[0] + counts[1] + counts[2])));
    CHECK(weights[0] / weights[1] ==
          Approx(std::sqrt(static_cast<double>(counts[1]) / static_cast<double>(counts[0]))));
    CHECK(weights[3] == std::max({weights[0], weights[1], weights[2]}));
    Dataset test = open_dataset(path);  // the same weights come back from a checkpoint
    const TrainedData read = read_trained_data(to_text(trained_data_of(data)), "checkpoint");
    demand_labels(test, model);
    see_as_trained(test, read, "checkpoint");
    CHECK(test.label_weights.by_class == weights);
  }
  check_batch(data, stored);
}

TEST_CASE("labels of pixels that are no class are refused with their place", "[data][dense]") {
  const test::Folder folder;
  const std::string path = folder / "scenes.h5";
  write(path, some_labels(), {kImages, kRows, kColumns});
  Dataset data = open_dataset(path);
  CHECK_THROWS_AS(LabelSample(data), DataError);
  CHECK_THROWS_WITH(LabelSample(data), Contains("scenes.h5: record 0 of 'labels' has label 255 at (1, 0)") &&
                                           Contains("must be 0 to 3") && Contains("model.ignore_label = 255"));
  const auto plan = plan_of(data);
  Loader loader(data, *plan, {});
  CHECK_THROWS_AS(loader.next(), DataError);

  CHECK_THROWS_WITH(demand_labels(data, model_with({}, {1, 2})),
                    Contains("model.class_weights has 2 weights") && Contains("has 4 classes"));
  write(path, some_labels(), {kImages, kPlaces, 1, 1});
  CHECK(open_dataset(path).label_shape == Shape{kPlaces, 1, 1});
}

TEST_CASE("[data.hdf5] reads a class for every pixel", "[data][hdf5][dense]") {
  const test::Folder folder;
  const std::string path = folder / "scenes.h5";
  const std::vector<std::uint8_t> stored = some_labels();
  Hdf5Config keys;
  keys.samples = {"samples"};
  keys.labels = "labels";
  keys.label_form = LabelForm::dense;
  keys.classes = 4;
  CHECK_FALSE(keys.misfit());
  for (const Shape& shape :
       {Shape{kImages, kRows, kColumns}, Shape{kImages, 1, kRows, kColumns}, Shape{kImages, kRows, kColumns, 1}}) {
    write(path, stored, shape);
    Dataset data = open_dataset(path, 0, Labels::needed, keys);
    CHECK(data.label_shape == Shape{kRows, kColumns});
    demand_labels(data, model_with({255}));
    check_batch(data, stored);
  }
  write(path, stored, {kImages, kColumns, kRows});
  CHECK_THROWS_WITH(open_dataset(path, 0, Labels::needed, keys),
                    Contains("(5, 3, 2)") && Contains("places of a sample are (2, 3)"));
  keys.label_form = LabelForm::classes;
  CHECK_THROWS_WITH(open_dataset(path, 0, Labels::needed, keys), Contains("label_form = \"dense\""));
  keys.label_form = LabelForm::dense;
  keys.axes = "NWHC";
  CHECK(keys.misfit()->why.find("has another order") != std::string::npos);
  keys.axes = "NTF";
  CHECK(keys.misfit()->why.find("has time steps") != std::string::npos);
  keys.axes = "NHWC", keys.classes = 0;
  CHECK(keys.misfit()->why.find("\"dense\" needs data.hdf5.classes") != std::string::npos);
}

}  // namespace echelon
