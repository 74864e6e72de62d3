// SPDX-License-Identifier: Apache-2.0
// Figures of classes compared with plain loops over random outputs: ties, labels that do not count, few classes.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "tests/support/random.hpp"
#include "tests/support/trainer.hpp"
#include "train/class_counter.hpp"
#include "train/value_counter.hpp"

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

TEST_CASE("the area under the ROC curve is that of all pairs of labels", "[evaluate]") {
  const std::int64_t n = GENERATE(3, 6, 400);
  const std::vector<double> draws = random_values(static_cast<std::size_t>(2 * n), "scores");
  ClassCounts counts(2, GENERATE(false, true), true);
  std::vector<std::pair<std::int64_t, double>> rows;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    // Sixteenths are exact, and many are equal; the last scores are far outside and near 0.
    double score = std::floor(16 * (draws[at] + 0.3 * draws[at + static_cast<std::size_t>(n)])) / 16;
    if (n > 100 && i < 4) score = i % 2 == 0 ? 1000 : -70000;
    rows.emplace_back(i % 2 == 0 ? (i % 3 == 0 ? 1 : 0) : (i % 5 == 0 ? 0 : 1), score);
    counts.add_score(rows.back().first, score);
  }
  double won = 0, pairs = 0;
  for (const auto& [yes, high] : rows)
    for (const auto& [no, low] : rows)
      if (yes == 1 && no == 0) won += high > low ? 1 : high == low ? 0.5 : 0, ++pairs;
  CHECK(counts.figures().auc == Approx(won / pairs).epsilon(1e-14));
  CHECK(std::isnan(ClassCounts(2, false, true).figures().auc));
  CHECK(std::isnan(ClassCounts(3, false).figures().auc));
  ClassCounts close(2, false, true);  // 13 significant bits tell these apart, and the sign always
  close.add_score(0, 1.0), close.add_score(1, 1.0 + 1.0 / 2048), close.add_score(0, -0.001);
  CHECK(close.figures().auc == 1);
}

TEST_CASE("errors of numbers are those of scikit-learn's formulas, by batches", "[evaluate]") {
  LayerConfig head;
  head.type = "dense", head.units = 3;
  const Graph graph = build_layers({head}, {.shape = {4}, .label = {3}});
  REQUIRE(gives_numbers(graph));
  ValueCounter counter(graph);
  std::vector<double> sums;
  double weight = 0, absolute = 0;
  std::vector<std::vector<std::array<double, 3>>> columns(3);  // output, label, weight
  for (const std::int64_t n : {7, 4}) {
    Trainer trainer(graph, n, {.training = false});
    PlainBatch batch = hashed_batch(form_of(graph), n, n, test_seed());
    batch.weights.back() = 0, batch.weights.front() = 0.5;
    (void)trainer.loss(batch);
    const std::vector<double> outputs = trainer.read(trainer.program().value("dense1"));
    std::vector<double> own(counter.sums());
    counter.count(trainer.arenas().device(), trainer.program(),
                  {.n = n, .labels = batch.labels.data(), .weights = batch.weights.data()}, own.data());
    sums.insert(sums.end(), own.begin(), own.end());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const double w = batch.weights[i];
      columns[i % 3].push_back({outputs[i], batch.labels[i], w});
      weight += w, absolute += w * std::fabs(outputs[i] - batch.labels[i]);
    }
  }
  double r2 = 0;
  for (const auto& column : columns) {
    double w = 0, mean = 0, left = 0, all = 0;
    for (const auto& [x, t, own] : column) w += own, mean += own * t;
    for (const auto& [x, t, own] : column)
      left += own * (x - t) * (x - t), all += own * (t - mean / w) * (t - mean / w);
    r2 += (1 - left / all) / 3;
  }
  const ValueFigures figures = counter.figures(sums);
  CHECK(figures.mae == Approx(absolute / weight).epsilon(1e-12));
  CHECK(figures.r2 == Approx(r2).epsilon(1e-10));
  CHECK(std::isnan(counter.figures(std::vector<double>(counter.sums())).mae));
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
