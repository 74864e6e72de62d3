// SPDX-License-Identifier: Apache-2.0
// frnn_lstm over windows of series: its published size, and losses and gradients beside a plain loop over steps whose
// states go on from window to window of one series and begin anew with the next.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.hpp"
#include "model/zoo/zoo.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/trainer.hpp"

using namespace echelon;
using namespace echelon::test;
using Catch::Matchers::Contains;

namespace {

constexpr std::size_t kSteps = 5, kFeatures = 3, kRows = 2;
constexpr std::array<std::size_t, 2> kUnits = {4, 3};

struct Series {
  std::vector<double> values, labels;  // (steps, F), (steps)
};

struct States {
  std::array<std::vector<double>, 2> h, c;
  States() {
    for (std::size_t layer = 0; layer < 2; ++layer) h[layer].assign(kUnits[layer], 0), c[layer] = h[layer];
  }
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One step of an LSTM with weights (4 H, F), (4 H, H), (4 H), (4 H) in a row, gates i, f, g, o; returns their end.
std::size_t cell(const std::vector<double>& w, std::size_t at, const std::vector<double>& x, std::vector<double>& h,
                 std::vector<double>& c) {
  const std::size_t H = h.size(), F = x.size(), of_h = at + 4 * H * F, of_b = of_h + 4 * H * H;
  std::vector<double> gates(4 * H);
  for (std::size_t g = 0; g < 4 * H; ++g) {
    gates[g] = w[of_b + g] + w[of_b + 4 * H + g];
    for (std::size_t f = 0; f < F; ++f) gates[g] += w[at + g * F + f] * x[f];
    for (std::size_t u = 0; u < H; ++u) gates[g] += w[of_h + g * H + u] * h[u];
  }
  for (std::size_t u = 0; u < H; ++u) {
    c[u] = sigmoid(gates[H + u]) * c[u] + sigmoid(gates[u]) * std::tanh(gates[2 * H + u]);
    h[u] = sigmoid(gates[3 * H + u]) * std::tanh(c[u]);
  }
  return of_b + 8 * H;
}

// The sum of hinge losses over steps [begin, end) from these states, which become those after them.
double loop(const std::vector<double>& w, const Series& series, std::size_t begin, std::size_t end, States& states) {
  double loss = 0;
  for (std::size_t t = begin; t < end; ++t) {
    std::vector<double> x(series.values.begin() + static_cast<std::ptrdiff_t>(t * kFeatures),
                          series.values.begin() + static_cast<std::ptrdiff_t>((t + 1) * kFeatures));
    std::size_t at = 0;
    for (std::size_t layer = 0; layer < 2; ++layer) {
      at = cell(w, at, x, states.h[layer], states.c[layer]);
      x = states.h[layer];
    }
    double score = w[at + x.size()];
    for (std::size_t u = 0; u < x.size(); ++u) score += w[at + u] * x[u];
    loss += std::max(0.0, 1 - series.labels[t] * score);
  }
  return loss;
}

// A window of a series, with what a plain loop has before it.
struct Window {
  const Series* series;
  std::size_t begin, end;
  States before = {};
};

Graph small_net(bool stream) {
  ModelConfig config;
  config.zoo = "frnn_lstm", config.widths = {4, 3}, config.dropout = 0, config.loss = "hinge";
  return build_model(config, {.shape = {kSteps, kFeatures}, .label = {kSteps}, .lengths = true, .stream = stream});
}

}  // namespace

TEST_CASE("frnn_lstm has the size of Keras' net and a second bias", "[model]") {
  const Graph graph = build_zoo("frnn_lstm", zoo_form("frnn_lstm"));
  const std::int64_t F = 14, H = 200, keras = 4 * H * (F + H + 1) + 4 * H * (H + H + 1) + H + 1;
  CHECK(keras == 493'001);
  CHECK(graph.parameters().weight_elems() == keras + 2 * 4 * H);
  const auto refused = [](const SampleForm& form) {
    return refusal<ConfigError>([&] { build_zoo("frnn_lstm", form); });
  };
  CHECK_THAT(refused({.shape = {9, 4}, .classes = 2, .lengths = true}), Contains("a label for each step"));
  CHECK_THAT(refused(labelled({3, 8, 8}, 10)), Contains("takes series (T, F)"));
  const SampleForm targets{.shape = {9, 4}, .label = {9, 3}, .lengths = true};
  CHECK(build_zoo("frnn_lstm", targets).values()[static_cast<std::size_t>(graph.find("dense1"))].shape == Shape{9, 3});
}

TEST_CASE("losses of numbers say which layer fits labels of steps", "[model]") {
  LayerConfig dense;
  dense.type = "dense", dense.units = 2;
  const auto refused = [&](const Shape& label) {
    return refusal<ConfigError>([&] { build_layers({dense}, {.shape = {6, 4}, .label = label}); });
  };
  CHECK_THAT(refused({6}), Contains("end with a dense layer of units = 1"));
  CHECK_THAT(refused({6, 3}), Contains("end with a dense layer of units = 3"));
  CHECK(refused({6, 2}).empty());
}

TEST_CASE("states go on through the windows of a series, and begin anew with the next one", "[model]") {
  const std::array<std::vector<std::size_t>, kRows> lengths = {std::vector<std::size_t>{12, 4}, {7, 9}};
  std::vector<Series> all;
  std::array<std::vector<Window>, kRows> rows;
  all.reserve(4);
  for (std::size_t row = 0; row < kRows; ++row)
    for (const std::size_t steps : lengths[row]) {
      const std::string name = std::to_string(all.size());
      Series& series = all.emplace_back();
      series.values = random_values(steps * kFeatures, "values" + name);
      for (const double value : random_values(steps, "labels" + name)) series.labels.push_back(value > 0 ? 1 : -1);
      for (std::size_t t = 0; t < steps; t += kSteps) rows[row].push_back({&series, t, std::min(t + kSteps, steps)});
    }
  REQUIRE((rows[0].size() == 4 && rows[1].size() == 4));

  Trainer trainer(small_net(true), kRows);
  const std::vector<double> weights = trainer.read_weights();
  double wanted_all = 0;
  for (std::size_t step = 0; step < 4; ++step) {
    PlainBatch batch{.samples = std::vector<double>(kRows * kSteps * kFeatures, 0.0),
                     .labels = std::vector<double>(kRows * kSteps, 0.0),
                     .weights = std::vector<double>(kRows * kSteps, 0.0)};
    double wanted = 0;
    for (std::size_t row = 0; row < kRows; ++row) {
      Window& window = rows[row][step];
      States states = window.begin == 0 ? States() : rows[row][step - 1].before;
      if (window.begin > 0) loop(weights, *window.series, rows[row][step - 1].begin, window.begin, states);
      window.before = states;
      wanted += loop(weights, *window.series, window.begin, window.end, states);
      if (window.begin == 0) trainer.program().reset_states(0, static_cast<std::int64_t>(row));
      for (std::size_t t = window.begin; t < window.end; ++t) {
        const std::size_t at = row * kSteps + t - window.begin;
        for (std::size_t f = 0; f < kFeatures; ++f)
          batch.samples[at * kFeatures + f] = window.series->values[t * kFeatures + f];
        batch.labels[at] = window.series->labels[t], batch.weights[at] = 1;
      }
      batch.lengths.push_back(static_cast<double>(window.end - window.begin));
      batch.ids.push_back(static_cast<double>(row));
    }
    trainer.program().reset_losses();
    trainer.gradients(batch, 1, step == 0);
    CHECK(trainer.program().losses().loss == Approx(wanted).epsilon(1e-12));
    wanted_all += wanted;
  }

  // Truncated: no gradient leaves a window, so each is the derivative of its loss at the states before it.
  const auto loss_at = [&](const std::vector<double>& w) {
    double loss = 0;
    for (const std::vector<Window>& row : rows)
      for (const Window& window : row) {
        States states = window.before;
        loss += loop(w, *window.series, window.begin, window.end, states);
      }
    return loss;
  };
  REQUIRE(loss_at(weights) == Approx(wanted_all).epsilon(1e-12));
  std::vector<double> wanted, near = weights;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    constexpr double kNear = 1e-5;
    near[i] = weights[i] + kNear;
    const double above = loss_at(near);
    near[i] = weights[i] - kNear;
    wanted.push_back((above - loss_at(near)) / (2 * kNear));
    near[i] = weights[i];
  }
  CHECK(relative_distance(trainer.read_gradients(), wanted) < 1e-7);
}
