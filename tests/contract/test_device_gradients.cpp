// SPDX-License-Identifier: Apache-2.0
// Compares every backward op of the reference device with finite differences of its forward op, in double.
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "tests/support/gradient_check.hpp"
#include "tests/support/random.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

// Draws distinct values far apart from each other and from 0, so that no step crosses a tie or a kink.
std::vector<double> apart(std::size_t n) {
  std::vector<double> keys = random_values(n, "apart"), values(n);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  for (std::size_t i = 0; i < n; ++i)
    values[order[i]] = (static_cast<double>(i) + 0.5) / static_cast<double>(n) * 2 - 1 + 1e-3;
  return values;
}

// Checks convolution and dense, which share their arguments: x w [b] -> y.
template <class D>
void check_linear(const D& d, OpKind forward_kind, OpKind data_kind, OpKind weights_kind) {
  const OpSpec forward = f64_spec(forward_kind, d);
  INFO(forward.text());
  const Values inputs = random_inputs(forward);
  const auto dy = random_gradient(forward);
  const Values data = oracle_outputs(f64_spec(data_kind, d), {dy, inputs[1]});
  const Values weights = oracle_outputs(f64_spec(weights_kind, d), {inputs[0], dy});
  CHECK(relative_distance(data[0], numeric(forward, inputs, 0, dy)) < kLimit);
  CHECK(relative_distance(weights[0], numeric(forward, inputs, 1, dy)) < kLimit);
  REQUIRE(weights.size() == (d.bias ? 2U : 1U));
  if (d.bias) CHECK(relative_distance(weights[1], numeric(forward, inputs, 2, dy)) < kLimit);
}

}  // namespace

TEST_CASE("convolution: both backwards are the derivative", "[device][gradient]") {
  const ConvDims rows[] = {
      {.N = 2, .C = 3, .in = {5, 6}, .K = 4, .kernel = {3, 2}, .pad = {1, 1}},
      {.N = 2, .C = 2, .in = {7, 6}, .K = 3, .kernel = {3, 3}, .stride = {2, 3}, .pad = {1, 2}},
      {.N = 1, .C = 4, .in = {7, 7}, .K = 6, .kernel = {3, 2}, .pad = {2, 0}, .dil = {2, 3}, .groups = 2},
      {.N = 2, .C = 3, .in = {4, 4}, .K = 3, .kernel = {2, 2}, .groups = 3, .bias = false},
      {.N = 2, .C = 2, .in = {4, 5, 3}, .K = 3, .kernel = {3, 2, 2}, .stride = {2, 1, 1}, .pad = {1, 1, 0}},
      {.N = 1, .C = 4, .in = {5, 3, 5}, .K = 2, .kernel = {2, 2, 3}, .pad = {0, 1, 2}, .dil = {3, 1, 2}, .groups = 2},
      {.N = 2, .C = 3, .in = {9}, .K = 4, .kernel = {3}, .stride = {2}, .pad = {2}, .dil = {2}},
  };
  for (const ConvDims& d : rows)
    check_linear(d, OpKind::conv_forward, OpKind::conv_backward_data, OpKind::conv_backward_weights);
}

TEST_CASE("dense: both backwards are the derivative", "[device][gradient]") {
  for (const DenseDims& d : {DenseDims{3, 7, 5}, DenseDims{.N = 1, .F = 4, .K = 6, .bias = false}})
    check_linear(d, OpKind::dense_forward, OpKind::dense_backward_data, OpKind::dense_backward_weights);
}

TEST_CASE("convolution and pools give numbers worked out by hand", "[device]") {
  // A 3x3 image of 1..9 with the 2x2 kernel 1 2 / 3 4 and bias 10: the kernel must not be flipped.
  const ConvDims conv{.N = 1, .C = 1, .in = {3, 3}, .K = 1, .kernel = {2, 2}};
  const std::vector<double> x = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  CHECK(oracle_outputs(f64_spec(OpKind::conv_forward, conv), {x, {1, 2, 3, 4}, {10}})[0] ==
        std::vector<double>{47, 57, 77, 87});
  PoolDims pool{.N = 1, .C = 1, .in = {3, 3}, .kernel = {2, 2}, .stride = {2, 2}, .pad = {1, 1}};
  CHECK(oracle_outputs(f64_spec(OpKind::pool_forward, pool), {x})[0] == std::vector<double>{1, 3, 7, 9});
  pool.mode = PoolMode::average_inside;
  CHECK(oracle_outputs(f64_spec(OpKind::pool_forward, pool), {x})[0] == std::vector<double>{1, 2.5, 5.5, 7});
  pool.mode = PoolMode::average_all;
  CHECK(oracle_outputs(f64_spec(OpKind::pool_forward, pool), {x})[0] == std::vector<double>{0.25, 1.25, 2.75, 7});
  // Windows cover rows 0 and 1, then row 2 and the padding below; then there is padding above only.
  pool.pad.h = 0, pool.more_behind = 1;
  CHECK(oracle_outputs(f64_spec(OpKind::pool_forward, pool), {x})[0] == std::vector<double>{1.25, 4, 1.75, 4.25});
  pool.mode = PoolMode::average_inside;
  CHECK(oracle_outputs(f64_spec(OpKind::pool_forward, pool), {x})[0] == std::vector<double>{2.5, 4, 7, 8.5});
  pool.pad.h = 1, pool.more_behind = -1;
  CHECK(oracle_outputs(f64_spec(OpKind::pool_forward, pool), {x})[0] == std::vector<double>{1, 2.5, 5.5, 7});
}

TEST_CASE("pools: the backward is the derivative", "[device][gradient]") {
  for (const std::int64_t more : {0, -1, 1})
    for (PoolMode mode : {PoolMode::max, PoolMode::average_inside, PoolMode::average_all}) {
      PoolDims d{.N = 2, .C = 3, .in = {6, 7}, .kernel = {3, 2}, .stride = {2, 1}, .pad = {1, 1}, .mode = mode};
      d.more_behind = more;
      const OpSpec forward = f64_spec(OpKind::pool_forward, d);
      INFO(forward.text());
      const Values inputs = {apart(static_cast<std::size_t>(d.N * d.C * d.in.h * d.in.w))};
      const auto dy = random_gradient(forward);
      std::vector<std::byte> saved;
      (void)oracle_outputs(forward, inputs, {}, &saved);
      const Values backward = oracle_outputs(f64_spec(OpKind::pool_backward, d), {dy}, {}, &saved);
      CHECK(relative_distance(backward[0], numeric(forward, inputs, 0, dy)) < kLimit);
    }
}

TEST_CASE("a max pool with relu is the max pool of relus", "[device]") {
  PoolDims d{.N = 2, .C = 3, .in = {6, 7}, .kernel = {3, 2}, .stride = {2, 1}, .pad = {1, 1}};
  std::vector<double> x = apart(static_cast<std::size_t>(d.N * d.C * d.in.h * d.in.w));
  for (std::size_t i = 0; i < x.size() / 2; ++i) x[i] = -std::abs(x[i]);  // some whole windows give 0
  const auto run = [&](const std::vector<double>& from) {
    std::vector<std::byte> saved;
    const OpSpec forward = f64_spec(OpKind::pool_forward, d);
    const auto y = oracle_outputs(forward, {from}, {}, &saved)[0];
    return Values{y, oracle_outputs(f64_spec(OpKind::pool_backward, d), {random_gradient(forward)}, {}, &saved)[0]};
  };
  std::vector<double> cut = x;
  for (double& value : cut) value = std::max(0.0, value);
  Values apart_ones = run(cut);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!(x[i] > 0)) apart_ones[1][i] = 0;
  d.relu = true;
  const Values fused = run(x);
  CHECK(fused == apart_ones);
  CHECK(fused[1] != std::vector<double>(x.size(), 0.0));
}

TEST_CASE("of equal maxima the first takes the gradient", "[device]") {
  const PoolDims d{.N = 1, .C = 1, .in = {2, 2}, .kernel = {2, 2}};
  std::vector<std::byte> saved;
  (void)oracle_outputs(f64_spec(OpKind::pool_forward, d), {{0, 3, 3, 3}}, {}, &saved);
  CHECK(oracle_outputs(f64_spec(OpKind::pool_backward, d), {{5}}, {}, &saved)[0] == std::vector<double>{0, 5, 0, 0});
}

TEST_CASE("activations: the backward is the derivative", "[device][gradient]") {
  for (Activation function : {Activation::relu, Activation::tanh, Activation::sigmoid}) {
    const ActivationDims d{Shape{2, 3, 2, 4}, function};
    const OpSpec forward = f64_spec(OpKind::activation_forward, d);
    INFO(forward.text());
    const Values inputs = {apart(static_cast<std::size_t>(d.shape.elems()))};
    const auto dy = random_gradient(forward);
    const auto y = oracle_outputs(forward, inputs)[0];
    const Values backward = oracle_outputs(f64_spec(OpKind::activation_backward, d), {y, dy});
    CHECK(relative_distance(backward[0], numeric(forward, inputs, 0, dy)) < kLimit);
  }
}

TEST_CASE("gelu: the backward is the derivative, told from the input", "[device][gradient]") {
  const ActivationDims d{Shape{2, 3, 2, 4}, Activation::gelu};
  const OpSpec forward = f64_spec(OpKind::activation_forward, d);
  Values inputs = random_inputs(forward);
  for (double& value : inputs[0]) value *= 4;
  const auto dy = random_gradient(forward);
  const Values backward = oracle_outputs(f64_spec(OpKind::activation_backward, d), {inputs[0], dy});
  CHECK(relative_distance(backward[0], numeric(forward, inputs, 0, dy)) < kLimit);
  const OpSpec one = f64_spec(OpKind::activation_forward, ActivationDims{Shape{3}, Activation::gelu});
  const Values known = oracle_outputs(one, {{1, -2, 0}});
  CHECK(known[0][0] == Approx(0.8413447460685429).epsilon(1e-12));
  CHECK(known[0][1] == Approx(-0.04550026389635842).epsilon(1e-12));
  CHECK(known[0][2] == 0);
}

TEST_CASE("local response normalisation: the backward is the derivative", "[device][gradient]") {
  const LrnDims rows[] = {{.N = 2, .C = 7, .H = 2, .W = 1, .size = 5, .alpha = 2, .beta = 0.75, .k = 1},
                          {.N = 1, .C = 6, .H = 1, .W = 2, .size = 4, .alpha = 3, .beta = 0.6, .k = 2},
                          {.N = 1, .C = 2, .H = 1, .W = 2, .size = 9, .alpha = 1, .beta = 1, .k = 1}};
  for (const LrnDims& d : rows) {
    const OpSpec forward = f64_spec(OpKind::lrn_forward, d);
    INFO(forward.text());
    const Values inputs = random_inputs(forward);
    const auto dy = random_gradient(forward);
    const Values backward = oracle_outputs(f64_spec(OpKind::lrn_backward, d), {inputs[0], dy});
    CHECK(relative_distance(backward[0], numeric(forward, inputs, 0, dy)) < kLimit);
  }
  // Channels 1, 2, 3 with a window of 2: the channel before and the channel itself; alpha is divided by the size.
  const OpSpec known =
      f64_spec(OpKind::lrn_forward, LrnDims{.N = 1, .C = 3, .H = 1, .W = 1, .size = 2, .alpha = 2, .beta = 1, .k = 1});
  const Values y = oracle_outputs(known, {{1, 2, 3}});
  CHECK(y[0][0] == Approx(1.0 / 2));
  CHECK(y[0][1] == Approx(2.0 / 6));
  CHECK(y[0][2] == Approx(3.0 / 14));
}

TEST_CASE("layer norm: the backward is the derivative", "[device][gradient]") {
  for (const LayerNormDims& d : {LayerNormDims{{3, 5}, 5, 1e-3}, LayerNormDims{{2, 2, 4}, 4}}) {
    const OpSpec forward = f64_spec(OpKind::layer_norm_forward, d);
    INFO(forward.text());
    const Values inputs = random_inputs(forward);
    const auto dy = random_gradient(forward);
    const Values out = oracle_outputs(forward, inputs);
    const Values backward =
        oracle_outputs(f64_spec(OpKind::layer_norm_backward, d), {inputs[0], dy, out[1], inputs[1]});
    for (std::size_t which : {0U, 1U, 2U})
      CHECK(relative_distance(backward[which], numeric(forward, inputs, which, dy)) < kLimit);
  }
  const OpSpec row = f64_spec(OpKind::layer_norm_forward, LayerNormDims{{1, 4}, 4, 0.5});
  const Values y = oracle_outputs(row, {{1, 2, 3, 6}, {1, 1, 1, 2}, {0, 0, 1, 0}});  // mean 3, variance 3.5
  CHECK(y[0] == std::vector<double>{-1, -0.5, 1, 3});
}

TEST_CASE("losses of numbers: the backward is the derivative", "[device][gradient]") {
  for (ValueLoss loss : {ValueLoss::squared, ValueLoss::logistic}) {
    const ValueLossDims d{6, loss};
    const OpSpec forward = f64_spec(OpKind::loss_values_forward, d);
    INFO(forward.text());
    Values inputs = random_inputs(forward);
    if (loss == ValueLoss::logistic) inputs[1] = {0, 1, 1, 0, 0, 1};
    const Values out = oracle_outputs(f64_spec(OpKind::loss_values_backward, d), inputs, {.scale = 0.5});
    std::vector<double> half = numeric(forward, inputs, 0, {1, 0, 0});
    for (double& value : half) value *= 0.5;
    CHECK(relative_distance(out[0], half) < kLimit);
  }
  const OpSpec squared = f64_spec(OpKind::loss_values_forward, ValueLossDims{2});
  CHECK(oracle_outputs(squared, {{1, 3}, {2, 5}, {1, 0.5}})[0] == std::vector<double>{3, 0, 1.5});
  const OpSpec logistic = f64_spec(OpKind::loss_values_forward, ValueLossDims{2, ValueLoss::logistic, true});
  const Values known = oracle_outputs(logistic, {{0, -2}, {1, 1}, {1, 1}});
  CHECK(known[0][0] == Approx(std::log(2) + std::log(1 + std::exp(2.0))));
  CHECK(known[0][1] == 0);
}

TEST_CASE("attention: the backward is the derivative", "[device][gradient]") {
  const AttentionDims rows[] = {{.N = 2, .T = 3, .S = 4, .D = 6, .heads = 2},
                                {.N = 2, .T = 4, .S = 4, .D = 3, .heads = 1, .causal = true},
                                {.N = 3, .T = 2, .S = 5, .D = 4, .heads = 2, .lengths = true}};
  for (const AttentionDims& d : rows) {
    const OpSpec forward = f64_spec(OpKind::attention_forward, d);
    INFO(forward.text());
    Values inputs = random_inputs(forward);
    if (d.lengths) inputs[3] = {1, 3, 5};
    const auto dy = random_gradient(forward);
    std::vector<std::byte> saved;
    (void)oracle_outputs(forward, inputs, {}, &saved);
    Values with_gradient = inputs;
    with_gradient.push_back(dy);
    const Values backward = oracle_outputs(f64_spec(OpKind::attention_backward, d), with_gradient, {}, &saved);
    for (std::size_t which : {0U, 1U, 2U})
      CHECK(relative_distance(backward[which], numeric(forward, inputs, which, dy)) < kLimit);
  }
  // Two places with scores log 2 apart, so the first has twice the weight of the second.
  const OpSpec known = f64_spec(OpKind::attention_forward, AttentionDims{.N = 1, .T = 1, .S = 2, .D = 1});
  CHECK(oracle_outputs(known, {{1}, {std::log(2), 0}, {3, 6}})[0][0] == Approx(4));
}

TEST_CASE("sequence pools and broadcasts: the backward is the derivative", "[device][gradient]") {
  for (SequencePool mode : {SequencePool::sum, SequencePool::mean, SequencePool::last}) {
    const SequencePoolDims d{2, 4, 3, mode, true};
    const OpSpec forward = f64_spec(OpKind::sequence_pool_forward, d);
    INFO(forward.text());
    const Values inputs = {random_values(24, "x"), {3, 4}};
    const auto dy = random_gradient(forward);
    const Values backward = oracle_outputs(f64_spec(OpKind::sequence_pool_backward, d), {dy, inputs[1]});
    CHECK(relative_distance(backward[0], numeric(forward, inputs, 0, dy)) < kLimit);
  }
  const OpSpec add = f64_spec(OpKind::broadcast_add, BroadcastDims{Shape{3, 2, 5}});
  const Values inputs = random_inputs(add);
  const auto dy = random_gradient(add);
  const Values backward = oracle_outputs(f64_spec(OpKind::sum_samples, BroadcastDims{Shape{3, 2, 5}}), {dy});
  CHECK(relative_distance(backward[0], numeric(add, inputs, 1, dy)) < kLimit);
}

TEST_CASE("dropout: by sample and element alone, the share of zeros, its own backward", "[device][gradient]") {
  const DropoutDims d{Shape{3, 2, 4, 5}, 0.25};
  const OpSpec spec = f64_spec(OpKind::dropout, d);
  const OracleScalars key{.key = 99};
  const auto x = random_values(120, "x");
  const Values out = oracle_outputs(spec, {x, {7, -3, 7}}, key);
  for (std::size_t i = 0; i < 40; ++i) {
    CHECK((out[0][i] == 0 || out[0][i] == x[i] / 0.75));
    CHECK((out[0][i] == 0) == (out[0][80 + i] == 0));  // both halves are the same sample
  }
  const OpSpec moved = f64_spec(OpKind::dropout, DropoutDims{Shape{2, 40}, 0.25});
  const Values alone = oracle_outputs(moved, {std::vector<double>(x.begin() + 40, x.end()), {-3, 7}}, key);
  CHECK(alone[0] == std::vector<double>(out[0].begin() + 40, out[0].end()));
  CHECK(oracle_outputs(spec, {x, {7, -3, 7}}, {.key = 98})[0] != out[0]);

  const DropoutDims wide{Shape{4, 5000}, 0.3};
  const Values ones =
      oracle_outputs(f64_spec(OpKind::dropout, wide), {std::vector<double>(20000, 1), {1, 2, 3, 4}}, key);
  CHECK(std::count(ones[0].begin(), ones[0].end(), 0.0) == Approx(6000).margin(260));  // 4 standard deviations
}

TEST_CASE("a slice gives back what a concat was given", "[device]") {
  const ConcatDims d{2, 3, 2, {3, 1, 4}};
  const OpSpec concat = f64_spec(OpKind::concat, d);
  const Values inputs = random_inputs(concat);
  const auto y = oracle_outputs(concat, inputs)[0];
  CHECK(y[0] == inputs[0][0]);
  CHECK(y[3 * 6] == inputs[1][0]);  // channel 3 of the first sample
  CHECK(y[8 * 6 + 4 * 6] == inputs[2][4 * 6]);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const OpSpec slice = f64_spec(OpKind::slice, SliceDims{2, 8, 3, 2, first, d.channels[i]});
    CHECK(oracle_outputs(slice, {y})[0] == inputs[i]);
    first += d.channels[i];
  }
}

TEST_CASE("softmax cross-entropy: the backward is the derivative of the weighted loss", "[device][gradient]") {
  const SoftmaxDims d{5, 4, GENERATE(0.0, 0.1)};
  const OpSpec forward = f64_spec(OpKind::loss_softmax_forward, d);
  const std::vector<double> labels = {3, 0, 1, 1, 2}, weights = {1, 0, 1, 1, 0.5};
  const auto logits = random_values(20, "logits");
  const Values out = oracle_outputs(forward, {logits, labels, weights});
  const auto numbers = numeric_gradient(logits, kStep, [&](const std::vector<double>& values) {
    return 0.125 * oracle_outputs(forward, {values, labels, weights})[1][0];
  });
  const Values backward =
      oracle_outputs(f64_spec(OpKind::loss_softmax_backward, d), {out[0], labels, weights}, {.scale = 0.125});
  CHECK(relative_distance(backward[0], numbers) < kLimit);
}

TEST_CASE("softmax cross-entropy: planes of classes are rows of classes, transposed", "[device][dense]") {
  constexpr std::int64_t N = 2, K = 3, P = 5;
  const auto planes = random_values(N * K * P, "logits");
  const auto in_rows = [&](const std::vector<double>& values) {
    std::vector<double> moved(values.size());
    for (std::int64_t i = 0; i < N * K * P; ++i)
      moved[static_cast<std::size_t>((i / (K * P) * P + i % P) * K + i / P % K)] = values[static_cast<std::size_t>(i)];
    return moved;
  };
  const std::vector<double> labels = {2, 0, 1, 1, 2, 0, 0, 2, 1, 0}, weights = {1, 0, 1, 3, 0.5, 1, 1, 0, 2, 1};
  const SoftmaxDims by_place{N, K, 0.1, P}, by_row{N * P, K, 0.1};
  const Values dense = oracle_outputs(f64_spec(OpKind::loss_softmax_forward, by_place), {planes, labels, weights});
  const Values plain =
      oracle_outputs(f64_spec(OpKind::loss_softmax_forward, by_row), {in_rows(planes), labels, weights});
  CHECK(in_rows(dense[0]) == plain[0]);
  CHECK(dense[1] == plain[1]);
  const Values back =
      oracle_outputs(f64_spec(OpKind::loss_softmax_backward, by_place), {dense[0], labels, weights}, {.scale = 0.5});
  CHECK(in_rows(back[0]) == oracle_outputs(f64_spec(OpKind::loss_softmax_backward, by_row), {plain[0], labels, weights},
                                           {.scale = 0.5})[0]);
}

TEST_CASE("softmax cross-entropy: label smoothing spreads a part of the target over all classes", "[device]") {
  const OpSpec forward = f64_spec(OpKind::loss_softmax_forward, SoftmaxDims{1, 3, 0.3});
  const std::vector<double> logits = {1, -2, 0.5};
  const double log_sum = std::log(std::exp(1.0) + std::exp(-2.0) + std::exp(0.5));
  const Values out = oracle_outputs(forward, {logits, {2}, {1}});
  CHECK(out[1][0] == Approx(0.8 * (log_sum - 0.5) + 0.1 * (log_sum - 1) + 0.1 * (log_sum + 2)));
}

TEST_CASE("softmax cross-entropy: sums, hits and large logits", "[device]") {
  const OpSpec forward = f64_spec(OpKind::loss_softmax_forward, SoftmaxDims{3, 2});
  // Equal logits give loss log 2; the first of equal maxima counts. Huge ones do not overflow. Weight 0 is left out.
  const Values out = oracle_outputs(forward, {{1, 1, 0, 2000, 5, -5}, {0, 1, 1}, {1, 2, 0}});
  CHECK(out[0][0] == Approx(0.5));
  CHECK(out[0][3] == Approx(1));
  CHECK(out[1][0] == Approx(std::log(2.0)));
  CHECK(out[1][1] == 3);
  CHECK(out[1][2] == 3);
  CHECK(oracle_outputs(forward, {{1, 1, 0, 2000, 5, -5}, {1, 0, 1}, {1, 1, 1}})[1][1] == 0);
}
