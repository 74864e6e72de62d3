// SPDX-License-Identifier: Apache-2.0
// Batch norm on the reference device, in double: its backward op against finite differences, its parts against the
// whole, with relu inside, and with renorm's correction.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/support/gradient_check.hpp"

using namespace echelon;
using namespace echelon::test;

TEST_CASE("batch norm: the local backward is the derivative", "[device][gradient]") {
  const bool relu = GENERATE(false, true);
  const NormDims d{.N = 3, .C = 2, .H = 2, .W = 3, .epsilon = 1e-3, .relu = relu};
  const OpSpec forward = f64_spec(OpKind::norm_local_forward, d);
  const Values inputs = random_inputs(forward);
  const auto dy = random_gradient(forward);
  const Values out = oracle_outputs(forward, inputs);
  Values given = {inputs[0], dy, out[1], inputs[1]};
  if (relu) given.push_back(inputs[2]);
  const Values backward = oracle_outputs(f64_spec(OpKind::norm_local_backward, d), given);
  for (std::size_t which : {0U, 1U, 2U})
    CHECK(relative_distance(backward[which], numeric(forward, inputs, which, dy)) < kLimit);
}

TEST_CASE("batch norm with relu is batch norm, then relu", "[device]") {
  const NormDims plain{.N = 3, .C = 4, .H = 2, .W = 3};
  NormDims with = plain;
  with.relu = true;
  const Values in = random_inputs(f64_spec(OpKind::norm_local_forward, plain));
  Values apart = oracle_outputs(f64_spec(OpKind::norm_local_forward, plain), in);
  const Values fused = oracle_outputs(f64_spec(OpKind::norm_local_forward, with), in);
  const std::vector<double> before = apart[0];
  for (double& y : apart[0]) y = std::max(0.0, y);
  CHECK(apart == fused);
  auto dy = random_gradient(f64_spec(OpKind::norm_local_forward, plain));
  const Values backward =
      oracle_outputs(f64_spec(OpKind::norm_local_backward, with), {in[0], dy, apart[1], in[1], in[2]});
  for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = before[i] > 0 ? dy[i] : 0;
  CHECK(backward == oracle_outputs(f64_spec(OpKind::norm_local_backward, plain), {in[0], dy, apart[1], in[1]}));
}

TEST_CASE("renorm: numbers worked out by hand, and the derivative with its correction held", "[device]") {
  // Two channels of four values: mean 3 and 0, variance 3.5 and 1; running mean 1 and 0.5, variance 1 and 4.
  const NormDims d{.N = 4, .C = 2, .H = 1, .W = 1, .epsilon = 0, .r_max = 1.5, .d_max = 1};
  const Values out =
      oracle_outputs(f64_spec(OpKind::norm_renorm, d), {{12, 0, 50, 4}, {2, 3}, {0.5, -1}, {1, 0.5}, {1, 4}});
  CHECK(out[2][0] == Approx(1.5));      // sqrt(3.5) / 1, bounded
  CHECK(out[2][1] == Approx(1 / 1.5));  // 1 / 2, bounded
  CHECK(out[2][2] == Approx(1));        // (3 - 1) / 1, bounded
  CHECK(out[2][3] == Approx(-0.25));    // (0 - 0.5) / 2
  CHECK(out[0] == std::vector<double>{2 * out[2][0], 3 * out[2][1]});
  CHECK(out[1][0] == Approx(0.5 + 2 * 1));
  CHECK(out[1][1] == Approx(-1 - 3 * 0.25));
  const Values back = oracle_outputs(f64_spec(OpKind::norm_renorm_backward, d), {{1, 2}, {10, 20}, out[2]});
  CHECK(back[0][0] == Approx(1.5 * 1 + 1 * 10));
  CHECK(back[0][1] == Approx(2 / 1.5 - 0.25 * 20));
  CHECK(back[1] == std::vector<double>{10, 20});
}

TEST_CASE("batch norm: four ops over two halves of a group equal the local pair over the whole", "[device][gradient]") {
  const NormDims whole{.N = 6, .C = 3, .H = 2, .W = 5};
  NormDims half = whole;
  half.N = 3;
  const OpSpec forward = f64_spec(OpKind::norm_local_forward, whole);
  const Values in = random_inputs(forward);
  const auto dy = random_gradient(forward);
  const Values out = oracle_outputs(forward, in);
  const Values backward = oracle_outputs(f64_spec(OpKind::norm_local_backward, whole), {in[0], dy, out[1], in[1]});

  const auto part = [](const std::vector<double>& all, std::size_t p) {
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    return p == 0 ? std::vector<double>(all.begin(), middle) : std::vector<double>(middle, all.end());
  };
  const auto plus = [](std::vector<double> a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  };
  const OracleScalars group{.count = 60};
  const OpSpec moments = f64_spec(OpKind::norm_moments, half), normalise = f64_spec(OpKind::norm_normalise, half);
  const auto sums = plus(oracle_outputs(moments, {part(in[0], 0)})[0], oracle_outputs(moments, {part(in[0], 1)})[0]);
  Values of_half[2];
  for (std::size_t p : {0U, 1U}) {
    const Values y = oracle_outputs(normalise, {part(in[0], p), in[1], in[2], sums}, group);
    CHECK(relative_distance(y[0], part(out[0], p)) < 1e-12);
    CHECK(relative_distance(y[1], out[1]) < 1e-12);
    of_half[p] = oracle_outputs(f64_spec(OpKind::norm_backward_sums, half), {part(in[0], p), part(dy, p), y[1]});
  }
  const auto gradient_sums = plus(of_half[0][0], of_half[1][0]);
  CHECK(relative_distance(plus(of_half[0][1], of_half[1][1]), backward[1]) < 1e-12);
  CHECK(relative_distance(plus(of_half[0][2], of_half[1][2]), backward[2]) < 1e-12);
  for (std::size_t p : {0U, 1U}) {
    const Values dx = oracle_outputs(f64_spec(OpKind::norm_backward_apply, half),
                                     {part(in[0], p), part(dy, p), out[1], in[1], gradient_sums}, group);
    CHECK(relative_distance(dx[0], part(backward[0], p)) < 1e-12);
  }
}

TEST_CASE("batch norm: running statistics are the mean and the unbiased variance", "[device]") {
  const NormDims d{.N = 4, .C = 1, .H = 1, .W = 1, .epsilon = 0.5};
  const OpSpec forward = f64_spec(OpKind::norm_local_forward, d);
  const Values out = oracle_outputs(forward, {{1, 2, 3, 6}, {1}, {0}});  // mean 3, variance 14/4, unbiased 14/3
  const Values statistics = oracle_outputs(f64_spec(OpKind::norm_statistics, d), {out[1]}, {.scale = 0.25});
  CHECK(statistics[0][0] == Approx(0.25 * 3).epsilon(1e-12));
  CHECK(statistics[1][0] == Approx(0.25 * 14.0 / 3).epsilon(1e-12));
  const Values group = oracle_outputs(f64_spec(OpKind::norm_statistics, d), {out[1]}, {.count = 8});
  CHECK(group[1][0] == Approx(14.0 / 4 * 8 / 7).epsilon(1e-12));
  const Values y = oracle_outputs(f64_spec(OpKind::norm_inference, d), {{1, 2, 3, 6}, {1}, {0}, {3}, {3.5}});
  CHECK(relative_distance(y[0], out[0]) < 1e-12);
}
