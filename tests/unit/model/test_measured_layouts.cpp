// SPDX-License-Identifier: Apache-2.0
// Layouts of convolutions by measurement: a choice for each convolution of the model, and gradients that do not depend
// on it beyond rounding.
#include "model/measured_layouts.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/support/replicas.hpp"
#include "tests/support/trainer.hpp"

using namespace echelon;
using namespace echelon::test;
using Catch::Contains;

namespace {

constexpr std::int64_t kBatch = 4;

std::vector<double> gradients(const Graph& graph, DType dtype, std::unique_ptr<Device> device) {
  Trainer trainer(graph, kBatch, {.dtype = dtype}, std::move(device));
  trainer.gradients(hashed_batch(form_of(graph), 0, kBatch, 1), kBatch, true);
  return trainer.read_gradients();
}

std::unique_ptr<Device> onednn_with(const ConvTable& table) { return open_device("onednn", {.conv_table = table}); }

// The largest difference between two gradients.
double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace

TEST_CASE("layouts of convolutions by measurement", "[model]") {
  const Graph graph = small_cnn();
  const MeasuredLayouts measured = measure_layouts(graph, DType::f32, kBatch, onednn_with);
  CHECK_THAT(measured.report, Contains("of 4 samples in ") && Contains(": rule ") && Contains("chosen: "));
  CHECK(ConvTable::parse(measured.table.text()) == measured.table);
  const MeasuredLayouts none = measure_layouts(small_sequence_models().front().graph, DType::f32, kBatch, onednn_with);
  CHECK(none.report == "no convolutions");
}

// The same f32 sums in another order: their error stays of the size that it has in the device's own order.
TEST_CASE("gradients in any layout of convolutions, by own code or not, are equal up to rounding", "[model]") {
  for (const Graph& graph : {small_cnn(), small_batch_norm_net()}) {
    const auto exact = gradients(graph, DType::f64, open_device("reference", {}));
    const double error = apart(gradients(graph, DType::f32, onednn_with({})), exact);
    for (const ConvLayout layout : {ConvLayout::rule, ConvLayout::channels_last, ConvLayout::blocked})
      for (const bool library : {false, true}) {
        const ConvTable table({layout, library, library});
        CHECK(apart(gradients(graph, DType::f32, onednn_with(table)), exact) <= 8 * error);
      }
  }
}
