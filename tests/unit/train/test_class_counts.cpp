// SPDX-License-Identifier: Apache-2.0
// Figures of classes compared with plain loops over random outputs: ties, labels that do not count, few classes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "tests/support/random.hpp"
#include "tests/support/trainer.hpp"
#include "train/class_counter.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

struct Row {
  std::int64_t label;
  std::vector<double> outputs;
};

// Returns the classes in the order of their outputs; equal ones are in the order of classes.
std::vector<std::int64_t> ranking(const std::vector<double>& outputs) {
  std::vector<std::int64_t> order(outputs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return outputs[static_cast<std::size_t>(a)] > outputs[static_cast<std::size_t>(b)];
  });
  return order;
}

void check_figures(const ClassCounts& counts, const std::vector<Row>& rows) {
  const auto classes = static_cast<std::size_t>(counts.classes());
  std::vector<std::vector<double>> confusion(classes, std::vector<double>(classes));
  double top5 = 0;
  for (const Row& row : rows) {
    const std::vector<std::int64_t> order = ranking(row.outputs);
    ++confusion[static_cast<std::size_t>(row.label)][static_cast<std::size_t>(order[0])];
    top5 += std::find(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(5, classes)),
                      row.label) != order.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(5, classes))
                ? 1
                : 0;
  }
  const ClassFigures figures = counts.figures();
  if (classes > 5)
    CHECK(figures.top5_accuracy == top5 / static_cast<double>(rows.size()));
  else
    CHECK(std::isnan(figures.top5_accuracy));
  double f1 = 0, iou = 0, present = 0;
  for (std::size_t c = 0; c < classes; ++c) {
    double labels = 0, chosen = 0;
    for (std::size_t o = 0; o < classes; ++o) labels += confusion[c][o], chosen += confusion[o][c];
    const double right = confusion[c][c];
    CHECK((labels == 0 ? std::isnan(figures.recall[c]) : figures.recall[c] == right / labels));
    CHECK((chosen == 0 ? std::isnan(figures.precision[c]) : figures.precision[c] == right / chosen));
    if (labels + chosen == 0) continue;
    const double recall = labels > 0 ? right / labels : 0, precision = chosen > 0 ? right / chosen : 0;
    CHECK(figures.iou[c] == right / (labels + chosen - right));
    iou += figures.iou[c];
    CHECK(figures.f1[c] == 2 * right / (labels + chosen));
    f1 += right > 0 ? 2 * recall * precision / (recall + precision) : 0;
    ++present;
  }
  CHECK(figures.macro_f1 == Approx(f1 / present));
  CHECK(figures.mean_iou == Approx(iou / present));
}

}  // namespace

TEST_CASE("figures of classes agree with plain loops, ties included", "[evaluate]") {
  const std::int64_t classes = GENERATE(2, 3, 7, 13), n = GENERATE(1, 29);
  const bool weighted = GENERATE(false, true);
  CAPTURE(classes, n, weighted, test_seed());
  LayerConfig same, relu;
  same.type = "dense", same.units = classes, same.bias = false, relu.type = "relu";
  const Graph graph = build_layers({same, relu}, labelled({classes}, classes));
  Trainer trainer(graph, n, {.training = false});
  std::vector<double> unit(static_cast<std::size_t>(classes * classes));
  for (std::int64_t c = 0; c < classes; ++c) unit[static_cast<std::size_t>(c * classes + c)] = 1;
  Device& device = trainer.arenas().device();
  device.to_device(trainer.arenas().weights_at(0), unit.data(), unit.size() * sizeof(double));
  trainer.arenas().touch();

  PlainBatch batch = hashed_batch(form_of(graph), 0, n, test_seed());
  for (double& value : batch.samples) value = std::floor(4 * value) / 4;  // many values are equal, some below 0
  for (std::int64_t i = 0; weighted && i + 1 < n; i += 2) batch.weights[static_cast<std::size_t>(i)] = 0;
  (void)trainer.loss(batch);
  std::vector<std::int32_t> labels(batch.labels.begin(), batch.labels.end());
  const Batch given{.n = n, .labels = labels.data(), .weights = batch.weights.data()};
  ClassCounts counts(classes_of(graph), true);
  ClassCounter(graph).count(device, trainer.program(), given, counts);

  std::vector<Row> rows;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto first = batch.samples.begin() + i * classes;
    std::vector<double> outputs(first, first + classes);
    for (double& value : outputs) value = std::max(value, 0.0);
    if (batch.weights[static_cast<std::size_t>(i)] > 0) rows.push_back({labels[static_cast<std::size_t>(i)], outputs});
  }
  check_figures(counts, rows);
}

TEST_CASE("binary cross-entropy counts two classes", "[evaluate]") {
  LayerConfig head;
  head.type = "dense", head.units = 1;
  const Graph graph = build_layers({head}, labelled({3}, 2), {.kind = "bce"});
  Trainer trainer(graph, 17, {.training = false});
  const PlainBatch batch = hashed_batch(form_of(graph), 0, 17, test_seed());
  (void)trainer.loss(batch);
  const std::vector<double> outputs = trainer.read(trainer.program().value("dense1"));
  std::vector<std::int32_t> labels(batch.labels.begin(), batch.labels.end());
  ClassCounts counts(classes_of(graph), false);
  ClassCounter(graph).count(trainer.arenas().device(), trainer.program(),
                            {.n = 17, .labels = labels.data(), .weights = batch.weights.data()}, counts);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < 17; ++i) rows.push_back({labels[i], {0.0, outputs[i]}});
  check_figures(counts, rows);
}

TEST_CASE("a class for every pixel is counted by pixel", "[evaluate][dense]") {
  constexpr std::int64_t kClasses = 6, kPlaces = 4 * 3, kImages = 5;
  LayerConfig conv;
  conv.type = "conv", conv.channels = kClasses, conv.kernel = {1, 1};
  const Graph graph = build_layers({conv}, {.shape = {2, 4, 3}, .label = {4, 3}, .classes = kClasses, .dense = true});
  REQUIRE(classes_of(graph) == kClasses);
  Trainer trainer(graph, kImages, {.training = false});
  PlainBatch batch = hashed_batch(form_of(graph), 0, kImages, test_seed());
  for (std::size_t i = 0; i < batch.weights.size(); i += 5) batch.weights[i] = 0;
  (void)trainer.loss(batch);
  const std::vector<double> outputs = trainer.read(trainer.program().value("conv1"));
  std::vector<std::int32_t> labels(batch.labels.begin(), batch.labels.end());
  ClassCounts counts(kClasses, true);
  ClassCounter(graph).count(trainer.arenas().device(), trainer.program(),
                            {.n = kImages, .labels = labels.data(), .weights = batch.weights.data()}, counts);
  std::vector<Row> rows;
  for (std::int64_t at = 0; at < kImages * kPlaces; ++at) {
    if (batch.weights[static_cast<std::size_t>(at)] == 0) continue;
    Row row{labels[static_cast<std::size_t>(at)], {}};
    for (std::int64_t k = 0; k < kClasses; ++k)
      row.outputs.push_back(outputs[static_cast<std::size_t>((at / kPlaces * kClasses + k) * kPlaces + at % kPlaces)]);
    rows.push_back(row);
  }
  check_figures(counts, rows);
}

TEST_CASE("a table by class quotes names and leaves what is unknown empty", "[evaluate]") {
  ClassCounts counts(3, true);
  counts.add(0, 0, 0), counts.add(0, 1, 2), counts.add(1, 1, 0);
  CHECK(counts.csv({"a,b", "c", "d"}) ==
        "class,name,labels,predictions,right,recall,precision,f1,iou,as_0,as_1,as_2\n"
        "0,\"a,b\",2,1,1,0.5,1,0.6666666666666666,0.5,1,1,0\n"
        "1,c,1,2,1,1,0.5,0.6666666666666666,0.5,0,1,0\n"
        "2,d,0,0,0,,,,,0,0,0\n");
  const ClassFigures some = chosen_figures(counts.figures(), {"class_recall"});
  CHECK(std::isnan(some.macro_f1));
  CHECK(some.precision.empty());
  CHECK(some.recall.size() == 3);
}
