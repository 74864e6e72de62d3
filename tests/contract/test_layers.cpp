// SPDX-License-Identifier: Apache-2.0
// Compares, for every layer, gradients of a whole loss through a small graph with finite differences, in double.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "model/layers/list.hpp"
#include "parallel/time_chunk_pipeline.hpp"
#include "tests/support/layer_rows.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_layout_device.hpp"
#include "tests/support/split_models.hpp"
#include "tests/support/trainer.hpp"

namespace echelon {
namespace {

using test::kClasses;
using test::LayerRow;
using test::PlainBatch;
using test::Trainer;

PlainBatch random_batch(const LayerRow& row, std::int64_t n) {
  PlainBatch batch = test::hashed_batch(row.form, 0, n, test::test_seed());
  for (std::size_t i = 0; i < batch.weights.size(); ++i) batch.weights[i] = i == 1 ? 0.0 : 1.0;
  return batch;
}

// Returns differences of the summed loss by one weight, for a step up, a step down, and both. Beside the kink of a
// maximum one of them sees the side that the loss is on; a wrong gradient matches none of them.
std::array<double, 3> differences(Trainer& trainer, const std::vector<PlainBatch>& micro, std::int64_t elem, double w,
                                  double h) {
  std::array<double, 3> loss{};
  for (std::size_t side = 0; side < 3; ++side) {
    trainer.write_weight(elem, w + (static_cast<double>(side) - 1) * h);
    for (const PlainBatch& batch : micro) loss[side] += trainer.loss(batch);
  }
  trainer.write_weight(elem, w);
  return {(loss[2] - loss[1]) / h, (loss[1] - loss[0]) / h, (loss[2] - loss[0]) / (2 * h)};
}

void check_against_differences(Trainer& trainer, const std::vector<PlainBatch>& micro) {
  for (std::size_t m = 0; m < micro.size(); ++m) trainer.gradients(micro[m], 1.0, m == 0);
  const std::vector<double> gradients = trainer.read_gradients(), weights = trainer.read_weights();
  double largest = 0;
  for (double g : gradients) largest = std::max(largest, std::fabs(g));
  for (const Parameter& p : trainer.arenas().parameters().all()) {
    if (p.kind != ParameterKind::weight) continue;
    for (std::int64_t pick : test::random_integers(std::min<std::size_t>(6, static_cast<std::size_t>(p.elems())),
                                                   p.begin, p.end() - 1, p.name)) {
      const auto at = static_cast<std::size_t>(pick);
      double found = 0;
      bool agrees = false;
      for (double h : {1e-5, 1e-6, 1e-7})
        for (const double each : differences(trainer, micro, pick, weights[at], h)) {
          if (agrees) continue;
          found = each;
          agrees = std::fabs(found - gradients[at]) < 1e-12 / h + 1e-6 * std::max(largest, 1.0);
        }
      INFO(p.name << "[" << pick - p.begin << "]: backward " << gradients[at] << ", differences " << found);
      CHECK(agrees);
    }
  }
}

TEST_CASE("every layer of the list has a row", "[layers]") {
  std::set<std::string> tested;
  for (const LayerRow& row : test::layer_rows())
    for (const LayerConfig& config : row.layers) tested.insert(config.type);
  for (const std::string& type : layer_types()) CHECK(tested.count(type) == 1);
}

TEST_CASE("gradients of every layer agree with finite differences", "[layers]") {
  for (const LayerRow& row : test::layer_rows()) DYNAMIC_SECTION(row.name) {
      Trainer trainer(test::graph_of(row), 3, {.seed = test::test_seed()});
      check_against_differences(trainer, {random_batch(row, 3)});
    }
}

TEST_CASE("accumulated gradients agree with finite differences of the summed loss", "[layers]") {
  for (const LayerRow& row : test::layer_rows()) DYNAMIC_SECTION(row.name) {
      Trainer trainer(test::graph_of(row), 2, {.seed = test::test_seed()});
      const PlainBatch all = test::hashed_batch(row.form, 0, 6, test::test_seed());
      check_against_differences(trainer, {part_of(all, 0, 2), part_of(all, 2, 2), part_of(all, 4, 2)});
    }
}

TEST_CASE("gradients of parameters that chunks of time share agree with finite differences", "[layers]") {
  for (const test::NamedGraph& model : test::small_stacks()) DYNAMIC_SECTION(model.name) {
      const Graph cut = cut_time(model.graph, std::vector<int>(model.graph.nodes().size()), 3).graph;
      Trainer trainer(cut, 2, {.seed = test::test_seed()});
      const PlainBatch all = test::hashed_batch(test::form_of(model.graph), 0, 4, test::test_seed());
      check_against_differences(trainer, {part_of(all, 0, 2), part_of(all, 2, 2)});
    }
}

TEST_CASE("dropout does nothing in evaluation", "[layers]") {
  const LayerRow row{"", labelled({2, 5, 4}, kClasses), test::layer_rows().front().layers};
  LayerRow with = row;
  LayerConfig dropout;
  dropout.type = "dropout";
  with.layers.push_back(dropout);
  Trainer evaluated(test::graph_of(with), 3, {.training = false}), trained(test::graph_of(with), 3),
      without(test::graph_of(row), 3);
  const PlainBatch batch = random_batch(row, 3);
  const double loss = without.loss(batch);
  CHECK(evaluated.loss(batch) == loss);
  CHECK(trained.loss(batch) != loss);
  const double first = trained.loss(batch);
  trained.set_step(1);
  CHECK(trained.loss(batch) != first);
  trained.set_step(0);
  CHECK(trained.loss(batch) == first);
}

TEST_CASE("every layer on onednn agrees with reference", "[layers][onednn]") {
  for (const LayerRow& row : test::layer_rows()) DYNAMIC_SECTION(row.name) {
      const Graph graph = test::graph_of(row);
      Trainer exact(graph, 3, {.seed = test::test_seed()});
      Trainer fast(graph, 3, {.device = "onednn", .dtype = DType::f32, .seed = test::test_seed()});
      const PlainBatch first = random_batch(row, 3), second = test::hashed_batch(row.form, 3, 3, 1);
      for (Trainer* trainer : {&exact, &fast}) {
        trainer->gradients(first, 2.0, true);
        trainer->gradients(second, 2.0, false);
      }
      CHECK(test::relative_distance(fast.read_gradients(), exact.read_gradients()) <= 1e-4);
      CHECK(fast.program().losses().loss == Approx(exact.program().losses().loss).epsilon(1e-5));
    }
}

TEST_CASE("whatever layouts a device asks for, gradients are the same", "[layers]") {
  for (const LayerRow& row : test::layer_rows()) DYNAMIC_SECTION(row.name) {
      const Graph graph = test::graph_of(row);
      Trainer plain(graph, 3, {.seed = test::test_seed()});
      const PlainBatch first = random_batch(row, 3), second = test::hashed_batch(row.form, 3, 3, 1);
      plain.gradients(first, 2.0, true);
      plain.gradients(second, 2.0, false);
      for (std::uint64_t draw = 0; draw < 20; ++draw) {
        Trainer moved(graph, 3, {.seed = test::test_seed()}, test::make_random_layout_device(test::test_seed() + draw));
        moved.gradients(first, 2.0, true);
        moved.gradients(second, 2.0, false);
        CHECK(test::relative_distance(moved.read_gradients(), plain.read_gradients()) <= 1e-14);
        CHECK(moved.program().losses().loss == plain.program().losses().loss);
      }
    }
}

}  // namespace
}  // namespace echelon
