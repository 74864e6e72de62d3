// SPDX-License-Identifier: Apache-2.0
// Focal, Dice, hinge and absolute losses on the reference device: known values, and gradients against finite
// differences.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/support/gradient_check.hpp"
#include "tests/support/random.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

// The outputs of a forward pass; with dice the sums over places are joined to the loss.
Values forward_of(const ClassLossDims& d, const Values& inputs) {
  Values out = oracle_outputs(f64_spec(OpKind::loss_class_forward, d), inputs);
  if (d.loss == ClassLoss::dice)
    out[1][0] += oracle_outputs(f64_spec(OpKind::loss_class_join, d), {out[2], out[2]})[0][0];
  return out;
}

Values backward_of(const ClassLossDims& d, const Values& forward, const std::vector<double>& labels,
                   const std::vector<double>& weights) {
  Values inputs = {forward[0], labels, weights};
  if (d.loss == ClassLoss::dice) inputs.push_back(forward[2]);
  return oracle_outputs(f64_spec(OpKind::loss_class_backward, d), inputs, {.scale = 0.125});
}

// The places [first, first + count) of each row of `row` values.
std::vector<double> columns(const std::vector<double>& values, std::int64_t row, std::int64_t first,
                            std::int64_t count) {
  std::vector<double> taken;
  for (auto at = values.begin(); at != values.end(); at += row)
    taken.insert(taken.end(), at + first, at + first + count);
  return taken;
}

}  // namespace

TEST_CASE("focal and Dice loss: the backward is the derivative of the loss", "[device][gradient]") {
  constexpr std::int64_t N = 2, K = 3, P = 5;
  const ClassLossDims d =
      GENERATE(ClassLossDims{N, K, P, ClassLoss::focal, 0}, ClassLossDims{N, K, P, ClassLoss::focal, 0.5},
               ClassLossDims{N, K, P, ClassLoss::focal, 2}, ClassLossDims{N, K, P, ClassLoss::dice});
  const std::vector<double> labels = {2, 0, 1, 1, 2, 0, 0, 2, 1, 0}, weights = {1, 0, 1, 3, 0.5, 1, 1, 0, 2, 1};
  const auto logits = random_values(N * K * P, "logits");
  const Values out = forward_of(d, {logits, labels, weights});
  const auto numbers = numeric_gradient(logits, kStep, [&](const std::vector<double>& values) {
    return 0.125 * forward_of(d, {values, labels, weights})[1][0];
  });
  CHECK(relative_distance(backward_of(d, out, labels, weights)[0], numbers) < kLimit);
}

TEST_CASE("Dice loss of places on several ranks is that of all places", "[device]") {
  constexpr std::int64_t N = 3, K = 4, P = 23;
  const ClassLossDims d{N, K, P, ClassLoss::dice};
  const auto logits = random_values(N * K * P, "logits");
  const auto drawn = [](std::int64_t most, const char* name) {
    const auto integers = random_integers(N * P, 0, most, name);
    return std::vector<double>(integers.begin(), integers.end());
  };
  const std::vector<double> labels = drawn(K - 1, "labels"), weights = drawn(2, "weights");
  const Values whole = forward_of(d, {logits, labels, weights});
  const std::vector<double> slopes = backward_of(d, whole, labels, weights)[0];
  const std::vector<std::int64_t> cuts = {0, 9, 10, P};
  std::vector<Values> parts;
  std::vector<double> overlaps(static_cast<std::size_t>(N * (2 * K + 1)));
  const auto part_dims = [&](std::size_t part) {
    return ClassLossDims{N, K, cuts[part + 1] - cuts[part], ClassLoss::dice};
  };
  const auto part_of = [&](const std::vector<double>& values, std::size_t part) {
    return columns(values, P, cuts[part], cuts[part + 1] - cuts[part]);
  };
  for (std::size_t part = 0; part + 1 < cuts.size(); ++part) {
    parts.push_back(oracle_outputs(f64_spec(OpKind::loss_class_forward, part_dims(part)),
                                   {part_of(logits, part), part_of(labels, part), part_of(weights, part)}));
    for (std::size_t i = 0; i < overlaps.size(); ++i) overlaps[i] += parts.back()[2][i];
  }
  double loss = 0;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    loss += oracle_outputs(f64_spec(OpKind::loss_class_join, part_dims(part)), {parts[part][2], overlaps})[0][0];
    parts[part][2] = overlaps;
    CHECK(relative_distance(backward_of(part_dims(part), parts[part], part_of(labels, part), part_of(weights, part))[0],
                            part_of(slopes, part)) < 1e-14);  // sums of P terms in another order
  }
  CHECK(loss == Approx(whole[1][0]).epsilon(1e-14));
}

TEST_CASE("focal loss without an exponent is cross-entropy", "[device]") {
  constexpr std::int64_t N = 3, K = 4, P = 2;
  const auto logits = random_values(N * K * P, "logits");
  const std::vector<double> labels = {3, 0, 1, 1, 2, 0}, weights = {1, 0, 2, 1, 0.5, 1};
  const ClassLossDims d{N, K, P, ClassLoss::focal, 0};
  const SoftmaxDims plain{N, K, 0, P};
  const Values ours = oracle_outputs(f64_spec(OpKind::loss_class_forward, d), {logits, labels, weights});
  const Values theirs = oracle_outputs(f64_spec(OpKind::loss_softmax_forward, plain), {logits, labels, weights});
  CHECK(relative_distance(ours[0], theirs[0]) < 1e-14);
  CHECK(relative_distance(ours[1], theirs[1]) < 1e-14);
  CHECK(relative_distance(
            oracle_outputs(f64_spec(OpKind::loss_class_backward, d), {ours[0], labels, weights})[0],
            oracle_outputs(f64_spec(OpKind::loss_softmax_backward, plain), {ours[0], labels, weights})[0]) < 1e-14);
  // Probabilities 1/4 and 3/4 with exponent 2.
  const OpSpec two = f64_spec(OpKind::loss_class_forward, ClassLossDims{1, 2, 1, ClassLoss::focal, 2});
  CHECK(oracle_outputs(two, {{0, std::log(3.0)}, {1}, {5}})[1][0] == Approx(5 * -std::log(0.75) / 16));
  CHECK(oracle_outputs(two, {{0, std::log(3.0)}, {0}, {1}})[1][0] == Approx(std::log(4.0) * 9 / 16));
}

TEST_CASE("Dice loss is that of each sample, by the weight of its labels", "[device]") {
  // Two places; probabilities of class 1 are 3/4 and 1/2, labels are 1 and 0.
  const std::vector<double> logits = {0, 0, std::log(3.0), 0};
  const ClassLossDims one{1, 2, 2, ClassLoss::dice};
  const double yes = (2 * 0.75 + 1) / (1.25 + 1 + 1), no = (2 * 0.5 + 1) / (0.75 + 1 + 1);
  const Values out = forward_of(one, {logits, {1, 0}, {1, 1}});
  CHECK(out[1][0] == Approx(2 * (1 - (yes + no) / 2)));
  CHECK(out[1][1] == 2);  // the first of equal logits is class 0
  CHECK(out[1][2] == 2);
  // A place of weight 0 does not exist. Another sample adds its own loss.
  const double alone = 1 - ((2 * 0.75 + 1) / (0.75 + 1 + 1) + 1 / (0.25 + 1)) / 2;
  CHECK(forward_of(one, {logits, {1, 0}, {1, 0}})[1][0] == Approx(alone));
  std::vector<double> twice = logits;
  twice.insert(twice.end(), logits.begin(), logits.end());
  const ClassLossDims two{2, 2, 2, ClassLoss::dice};
  CHECK(forward_of(two, {twice, {1, 0, 1, 0}, {1, 1, 1, 0}})[1][0] == Approx(out[1][0] + alone));
}

TEST_CASE("hinge and absolute loss: values, hits and slopes", "[device][gradient]") {
  const OpSpec hinge = f64_spec(OpKind::loss_values_forward, ValueLossDims{5, ValueLoss::hinge});
  const std::vector<double> x = {0.25, -3, 2, -0.5, 0}, signs = {1, 1, 1, -1, -1}, weights = {2, 1, 1, 1, 0};
  const Values out = oracle_outputs(hinge, {x, signs, weights});
  CHECK(out[0] == std::vector<double>{2 * 0.75 + 4 + 0 + 0.5, 4, 5});
  const OpSpec of_classes = f64_spec(OpKind::loss_values_forward, ValueLossDims{5, ValueLoss::hinge, true});
  CHECK(oracle_outputs(of_classes, {x, {1, 1, 1, 0, 0}, weights})[0] == out[0]);
  const Values slopes = oracle_outputs(f64_spec(OpKind::loss_values_backward, ValueLossDims{5, ValueLoss::hinge}),
                                       {x, signs, weights}, {.scale = 0.5});
  CHECK(slopes[0] == std::vector<double>{-1, -0.5, 0, 0.5, 0});
  const OpSpec absolute = f64_spec(OpKind::loss_values_forward, ValueLossDims{3, ValueLoss::absolute});
  CHECK(oracle_outputs(absolute, {{1, -2, 5}, {3, -2, 4}, {1, 1, 4}})[0] == std::vector<double>{6, 0, 6});
  CHECK(oracle_outputs(f64_spec(OpKind::loss_values_backward, ValueLossDims{3, ValueLoss::absolute}),
                       {{1, -2, 5}, {3, -2, 4}, {1, 1, 4}})[0] == std::vector<double>{-1, 0, 4});
}
