// SPDX-License-Identifier: Apache-2.0
// Weights in 8 bits: the bound of the rounding error, and the choice of parameters that are changed.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "checkpoint/quantise.hpp"
#include "model/build.hpp"
#include "model/zoo/zoo.hpp"
#include "tests/support/layer_rows.hpp"
#include "tests/support/random.hpp"
#include "tests/support/trainer.hpp"

namespace echelon {
namespace {

TEST_CASE("each weight is at most half a scale away, whatever the rows hold", "[quantise]") {
  for (const auto& [rows, each] : {std::pair{1, 1}, {3, 7}, {17, 129}}) {
    const std::vector<double> draws = test::random_values(static_cast<std::size_t>(rows * each), "weights");
    std::vector<float> values(draws.begin(), draws.end());
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] *= std::pow(10.0F, static_cast<float>(i / static_cast<std::size_t>(each) % 9) - 4);
    const QuantisedRows quantised = quantise_rows(values, rows);
    REQUIRE(quantised.values.size() == values.size());
    REQUIRE(quantised.scales.size() == static_cast<std::size_t>(rows));
    bool full = false;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double scale = static_cast<double>(quantised.scales[i / static_cast<std::size_t>(each)]);
      CHECK(std::fabs(static_cast<double>(values[i]) - quantised.values[i] * scale) <= scale / 2 * (1 + 1e-6));
      CHECK(std::abs(quantised.values[i]) <= 127);
      full = full || std::abs(quantised.values[i]) == 127;
    }
    CHECK(full);
  }
}

TEST_CASE("halves go to the even number, rows of zeros stay zeros, what is not finite is refused", "[quantise]") {
  const QuantisedRows halves = quantise_rows(std::vector<float>{127, 0.5F, 1.5F, -0.5F, -2.5F, 0, 0, -0.0F, 0, 0}, 2);
  CHECK(halves.values == std::vector<std::int8_t>{127, 0, 2, 0, -2, 0, 0, 0, 0, 0});
  CHECK(halves.scales[0] == 1);
  const QuantisedRows tiny = quantise_rows(std::vector<float>{std::numeric_limits<float>::denorm_min(), 0}, 1);
  CHECK(tiny.scales[0] > 0);
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()})
    CHECK_THROWS_AS(quantise_rows(std::vector<float>{1, bad}, 1), NumericError);
}

TEST_CASE("every parameter of two axes is a matrix, but for norms and positions", "[quantise]") {
  for (const test::LayerRow& row : test::layer_rows()) DYNAMIC_SECTION(row.name) {
      const Graph graph = test::graph_of(row);
      const std::vector<std::string> matrices = matrices_of(graph);
      for (const Node& node : graph.nodes())
        for (const int index : node.parameters) {
          const Parameter& p = graph.parameters()[index];
          const bool named = std::find(matrices.begin(), matrices.end(), p.name) != matrices.end();
          INFO(p.name);
          CHECK(named == (p.shape.rank() >= 2 && node.layer->kind() != "layer_norm" &&
                          node.layer->kind() != "position" && node.layer->kind() != "conv_transpose"));
        }
    }
}

TEST_CASE("matrices of a model lie on their 8-bit values, all else keeps its bits", "[quantise]") {
  for (const char* name : {"resnet20", "charlstm", "transformer"}) DYNAMIC_SECTION(name) {
      SampleForm form = zoo_form(name);
      if (form.shape.rank() == 3) form.shape = {3, 8, 8};
      test::Trainer trainer(build_zoo(name, form), 1,
                            {.dtype = DType::f32, .seed = test::test_seed(), .training = false});
      const std::vector<double> before = trainer.read_weights();
      const WeightBytes bytes = quantise(trainer.arenas(), trainer.graph());
      const std::vector<double> after = trainer.read_weights();
      const std::vector<std::string> matrices = matrices_of(trainer.graph());
      std::int64_t expected = 0;
      for (const Parameter& p : trainer.arenas().parameters().all()) {
        INFO(p.name);
        const bool matrix = std::find(matrices.begin(), matrices.end(), p.name) != matrices.end();
        const bool wanted = p.name.find("batch_norm") == std::string::npos &&
                            p.name.find("layer_norm") == std::string::npos &&
                            p.name.find("position") == std::string::npos && p.name.find("bias") == std::string::npos;
        CHECK(matrix == wanted);
        expected += matrix ? p.elems() + 4 * p.shape[0] : 4 * p.elems();
        const std::vector<float> whole(before.begin() + p.begin, before.begin() + p.end());
        const QuantisedRows rows = matrix ? quantise_rows(whole, p.shape[0]) : QuantisedRows{};
        bool same = true;
        for (std::size_t i = 0; i < whole.size(); ++i) {
          const float want = matrix ? static_cast<float>(rows.values[i]) *
                                          rows.scales[i / (whole.size() / static_cast<std::size_t>(p.shape[0]))]
                                    : whole[i];
          same = same && static_cast<double>(want) == after[static_cast<std::size_t>(p.begin) + i];
        }
        CHECK(same);
      }
      CHECK(bytes.int8 == expected);
      CHECK(bytes.plain == 4 * static_cast<std::int64_t>(before.size()));
    }
}

}  // namespace
}  // namespace echelon
