// SPDX-License-Identifier: Apache-2.0
// Recurrent layers and embeddings of the reference device: derivatives in double, padding, numbers worked out by hand.
#include <catch2/catch.hpp>
#include <cmath>

#include "device/device.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/random.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

constexpr double kStep = 1e-5, kLimit = 1e-7;

OpSpec f64_spec(OpKind kind, const Dims& dims) { return {kind, DType::f64, dims, {}}; }

std::vector<double> random_for(const ArgInfo& arg, const std::string& salt = {}) {
  return random_values(static_cast<std::size_t>(arg.shape.elems()), std::string(arg.name) + salt);
}

Values random_inputs(const OpSpec& spec, const std::string& salt = {}) {
  Values inputs;
  for (const ArgInfo& arg : signature(spec))
    if (arg.role == ArgRole::input) inputs.push_back(random_for(arg, salt));
  return inputs;
}

// Returns d (sum over outputs of dot(output, its gradient)) / d inputs[which].
std::vector<double> numeric_of_all(const OpSpec& forward, Values inputs, std::size_t which, const Values& gradients,
                                   double step = kStep) {
  return numeric_gradient(inputs[which], step, [&](const std::vector<double>& values) {
    inputs[which] = values;
    const Values out = oracle_outputs(forward, inputs);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += dot(out[i], gradients[i]);
    return sum;
  });
}

// Tells whether differences give the derivative: a relu's kink within a step of the inputs shows as two answers.
bool is_smooth_at(const OpSpec& forward, const Values& inputs, const Values& gradients) {
  const std::vector<ArgInfo> args = signature(forward);
  for (std::size_t which = 0; which < inputs.size(); ++which)
    if (args[which].name != "lengths" && relative_distance(numeric_of_all(forward, inputs, which, gradients, 4 * kStep),
                                                           numeric_of_all(forward, inputs, which, gradients)) >= kLimit)
      return false;
  return true;
}

}  // namespace

TEST_CASE("recurrent layers: the backward is the derivative", "[device][gradient]") {
  for (Cell cell : {Cell::tanh, Cell::relu, Cell::lstm, Cell::gru})
    for (bool reverse : {false, true})
      for (bool lengths : {false, true}) {
        RnnDims d{
            .N = 3, .T = 4, .F = 2, .H = 3, .cell = cell, .reverse = reverse, .initial = true, .lengths = lengths};
        d.dhn = true, d.dcn = d.has_c();
        const OpSpec forward = f64_spec(OpKind::rnn_forward, d), backward = f64_spec(OpKind::rnn_backward, d);
        INFO(backward.text());
        Values inputs = random_inputs(forward), gradients;
        const std::vector<ArgInfo> args = signature(forward), out = signature(backward);
        if (lengths) inputs[static_cast<std::size_t>(argument_index(args, "lengths"))] = {2, 4, 0};
        for (const ArgInfo& arg : args)
          if (arg.role == ArgRole::output) gradients.push_back(random_for(arg, " gradient"));
        for (int draw = 1; cell == Cell::relu && draw < 20 && !is_smooth_at(forward, inputs, gradients); ++draw) {
          inputs = random_inputs(forward, " draw " + std::to_string(draw));
          if (lengths) inputs[static_cast<std::size_t>(argument_index(args, "lengths"))] = {2, 4, 0};
        }
        Values given = inputs;
        given.push_back(oracle_outputs(forward, inputs)[0]);
        given.insert(given.end(), gradients.begin(), gradients.end());
        const Values found = oracle_outputs(backward, given);
        for (std::size_t which = 0; which < inputs.size(); ++which) {
          const int place = argument_index(out, "d" + std::string(args[which].name));
          if (args[which].name == "lengths") continue;
          INFO("gradient of " << args[which].name);
          REQUIRE(place >= 0);
          CHECK(relative_distance(found[static_cast<std::size_t>(place) - given.size()],
                                  numeric_of_all(forward, inputs, which, gradients)) < kLimit);
        }
      }
}

TEST_CASE("recurrent layers: a padded sequence is the short one, in both directions", "[device]") {
  for (Cell cell : {Cell::tanh, Cell::lstm, Cell::gru})
    for (bool reverse : {false, true}) {
      RnnDims padded{.N = 1, .T = 5, .F = 2, .H = 3, .cell = cell, .reverse = reverse, .lengths = true};
      RnnDims brief{.N = 1, .T = 3, .F = 2, .H = 3, .cell = cell, .reverse = reverse};
      Values inputs = random_inputs(f64_spec(OpKind::rnn_forward, padded));
      inputs.back() = {3};
      const Values longer = oracle_outputs(f64_spec(OpKind::rnn_forward, padded), inputs);
      inputs.pop_back();
      inputs[0].resize(6);
      const Values shorter = oracle_outputs(f64_spec(OpKind::rnn_forward, brief), inputs);
      for (std::size_t i = 0; i < 15; ++i) CHECK(longer[0][i] == (i < 9 ? shorter[0][i] : 0));
      for (std::size_t out = 1; out < shorter.size(); ++out) CHECK(longer[out] == shorter[out]);
      const auto last = shorter[0].begin() + (reverse ? 0 : 6);
      CHECK(shorter[1] == std::vector<double>(last, last + 3));
    }
}

// Returns steps [begin, end) of a (N, T, F) tensor.
std::vector<double> steps_of(const std::vector<double>& x, std::int64_t N, std::int64_t begin, std::int64_t end) {
  const std::int64_t row = static_cast<std::int64_t>(x.size()) / N, T = 5, F = row / T;
  std::vector<double> part;
  for (std::int64_t n = 0; n < N; ++n)
    part.insert(part.end(), x.begin() + n * row + begin * F, x.begin() + n * row + end * F);
  return part;
}

TEST_CASE("recurrent layers: chunks, states handed on and their gradients back, are the whole sequence", "[device]") {
  for (Cell cell : {Cell::tanh, Cell::lstm, Cell::gru}) {
    RnnDims whole{.N = 4, .T = 5, .F = 2, .H = 3, .cell = cell, .initial = true, .lengths = true, .dhn = true};
    whole.dcn = whole.has_c();
    const OpSpec forward = f64_spec(OpKind::rnn_forward, whole), backward = f64_spec(OpKind::rnn_backward, whole);
    INFO(forward.text());
    const std::size_t states = whole.has_c() ? 2 : 1;
    Values inputs = random_inputs(forward);
    inputs.back() = {1, 4, 5, 0};
    const Values all = oracle_outputs(forward, inputs);
    Values given = inputs;
    given.push_back(all[0]);
    for (const std::vector<double>& out : all) given.push_back(random_values(out.size(), std::to_string(given.size())));
    const Values gradients = oracle_outputs(backward, given);

    const auto chunk_dims = [&](std::int64_t begin, std::int64_t end) {
      RnnDims d = whole;
      d.T = end - begin, d.first = begin;
      return d;
    };
    const std::vector<std::pair<std::int64_t, std::int64_t>> chunks = {{0, 2}, {2, 5}};
    std::vector<Values> ins, outs;
    for (const auto& [begin, end] : chunks) {
      Values in = inputs;
      in[0] = steps_of(inputs[0], 4, begin, end);
      for (std::size_t s = 0; s < states && begin > 0; ++s) in[5 + s] = outs.back()[1 + s];
      outs.push_back(oracle_outputs(f64_spec(OpKind::rnn_forward, chunk_dims(begin, end)), in));
      ins.push_back(in);
      CHECK(outs.back()[0] == steps_of(all[0], 4, begin, end));
    }
    for (std::size_t s = 0; s < states; ++s) CHECK(outs.back()[1 + s] == all[1 + s]);

    Values passed(given.end() - static_cast<std::ptrdiff_t>(states), given.end()), sums;  // d hn, d cn
    for (std::size_t i = chunks.size(); i-- > 0;) {
      const auto [begin, end] = chunks[i];
      Values in = ins[i];
      in.push_back(outs[i][0]);
      in.push_back(steps_of(given[inputs.size() + 1], 4, begin, end));
      in.insert(in.end(), passed.begin(), passed.end());
      const Values found = oracle_outputs(f64_spec(OpKind::rnn_backward, chunk_dims(begin, end)), in);
      CHECK(relative_distance(found[0], steps_of(gradients[0], 4, begin, end)) < 1e-12);
      if (sums.empty()) sums.assign(5, {});
      for (std::size_t w = 1; w < 5; ++w) {
        sums[w].resize(found[w].size());
        for (std::size_t j = 0; j < found[w].size(); ++j) sums[w][j] += found[w][j];
      }
      passed.assign(found.begin() + 5, found.end());
    }
    for (std::size_t w = 1; w < 5; ++w) CHECK(relative_distance(sums[w], gradients[w]) < 1e-12);
    for (std::size_t s = 0; s < states; ++s) CHECK(relative_distance(passed[s], gradients[5 + s]) < 1e-12);
  }
}

TEST_CASE("an LSTM and a GRU give numbers worked out by hand", "[device]") {
  // One unit and one step; a = w x + b_x in gate order, b = w_h h + b_h.
  const auto sigmoid = [](double a) { return 1 / (1 + std::exp(-a)); };
  RnnDims d{.N = 1, .T = 1, .F = 1, .H = 1, .cell = Cell::lstm, .initial = true};
  const Values lstm = oracle_outputs(
      f64_spec(OpKind::rnn_forward, d),
      {{2}, {0.1, 0.2, 0.3, 0.4}, {1, 2, 3, 4}, {0.5, 0.6, 0.7, 0.8}, {0.01, 0.02, 0.03, 0.04}, {0.5}, {-1}});
  const double i = sigmoid(0.2 + 0.5 + 0.5 + 0.01), f = sigmoid(0.4 + 0.6 + 1 + 0.02);
  const double g = std::tanh(0.6 + 0.7 + 1.5 + 0.03), o = sigmoid(0.8 + 0.8 + 2 + 0.04);
  CHECK(lstm[2][0] == Approx(-f + i * g).epsilon(1e-14));
  CHECK(lstm[1][0] == Approx(o * std::tanh(-f + i * g)).epsilon(1e-14));
  d.cell = Cell::gru;
  const Values gru = oracle_outputs(f64_spec(OpKind::rnn_forward, d),
                                    {{2}, {0.1, 0.2, 0.3}, {1, 2, 3}, {0.5, 0.6, 0.7}, {0.01, 0.02, 0.03}, {0.5}});
  const double r = sigmoid(0.2 + 0.5 + 0.5 + 0.01), z = sigmoid(0.4 + 0.6 + 1 + 0.02);
  CHECK(gru[1][0] == Approx((1 - z) * std::tanh(0.6 + 0.7 + r * (1.5 + 0.03)) + z * 0.5).epsilon(1e-14));
}

TEST_CASE("embeddings: rows by number, gradients summed by row", "[device][gradient]") {
  const EmbeddingDims d{5, 3, 2};
  const Values y = oracle_outputs(f64_spec(OpKind::embedding_forward, d), {{2, 0, 2, 2, 0}, {1, 2, 3, 4, 5, 6}});
  CHECK(y[0] == std::vector<double>{5, 6, 1, 2, 5, 6, 5, 6, 1, 2});
  const Values dw = oracle_outputs(f64_spec(OpKind::embedding_backward, d), {{2, 0, 2, 2, 0}, y[0]});
  CHECK(dw[0] == std::vector<double>{2, 4, 0, 0, 15, 18});
}

TEST_CASE("sparse gradients of embeddings: marked rows are cleared, those of ids written and marked", "[device]") {
  const auto device = open_device(GENERATE("reference", "onednn"), {});
  const EmbeddingDims d{.rows = 3, .V = 40, .F = 2, .sparse = true};
  const auto op = device->make({OpKind::embedding_backward, DType::f32, d, {}});
  std::vector<std::int32_t> ids = {33, 2, 33};
  std::vector<float> dy = {1, 2, 3, 4, 10, 20}, dw(80, 7);
  dw[66] = dw[67] = 0;  // row 33, not marked
  std::vector<float> wanted = dw;
  std::vector<std::uint32_t> touched(2);
  mark_row(touched.data(), 5), mark_row(touched.data(), 39), mark_row(touched.data(), 2);
  const auto run = [&](unsigned accumulate) {
    void* tensors[] = {ids.data(), dy.data(), dw.data(), touched.data()};
    OpArgs args;
    args.tensors = tensors;
    args.accumulate = accumulate;
    op->run(args);
  };
  const auto row = [&](std::size_t v, float a, float b) { wanted[2 * v] = a, wanted[2 * v + 1] = b; };
  run(0);
  row(5, 0, 0), row(39, 0, 0), row(2, 3, 4), row(33, 11, 22);  // all other rows stay, as nobody marked them
  CHECK(dw == wanted);
  CHECK(touched == std::vector<std::uint32_t>{1U << 2, 1U << 1});
  ids = {5, 5, 2};
  run(0b1100);
  row(5, 4, 6), row(2, 13, 24);
  CHECK(dw == wanted);
  CHECK(touched == std::vector<std::uint32_t>{1U << 2 | 1U << 5, 1U << 1});
}
