// SPDX-License-Identifier: Apache-2.0
// Contract cases of batch normalisation.
#include <algorithm>
#include <cmath>

#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  const NormDims rows[] = {
      {.N = 2, .C = 3, .H = 4, .W = 5},  {.N = 1, .C = 17, .H = 8, .W = 8},
      {.N = 4, .C = 1, .H = 7, .W = 7},  {.N = 3, .C = 32, .H = 5, .W = 5, .epsilon = 1e-3},
      {.N = 9, .C = 10, .H = 1, .W = 1}, {.N = 3, .C = 16, .H = 17, .W = 33},
  };
  for (NormDims d : rows) {
    d.relu = false;
    for (OpKind kind : {OpKind::norm_moments, OpKind::norm_normalise, OpKind::norm_backward_sums,
                        OpKind::norm_backward_apply, OpKind::norm_local_forward, OpKind::norm_local_backward,
                        OpKind::norm_statistics, OpKind::norm_inference, OpKind::norm_renorm_backward})
      specs.push_back({kind, dtype, d, {}});
    d.relu = true;
    for (OpKind kind : {OpKind::norm_normalise, OpKind::norm_backward_sums, OpKind::norm_backward_apply,
                        OpKind::norm_local_forward, OpKind::norm_local_backward, OpKind::norm_inference})
      specs.push_back({kind, dtype, d, {}});
    d.relu = false;
    for (double bound : {1.0, 1.2, 5.0}) {
      d.r_max = bound, d.d_max = bound - 1;
      specs.push_back({OpKind::norm_renorm, dtype, d, {}});
    }
  }
  return specs;
}

double own_count(const NormDims& d) { return static_cast<double>(d.N * d.H * d.W); }

double group_count(const NormDims& d, const OpTrial& trial) { return trial.count > 0 ? trial.count : own_count(d); }

// Mean and 1/std of each channel of x, as a local forward would have left them.
std::vector<double> true_stats(const NormDims& d, const std::vector<double>& x) {
  const auto C = static_cast<std::size_t>(d.C), plane = static_cast<std::size_t>(d.H * d.W);
  std::vector<double> sum(C), squares(C), stats(2 * C);
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum[i / plane % C] += x[i];
    squares[i / plane % C] += x[i] * x[i];
  }
  const double count = own_count(d);
  for (std::size_t c = 0; c < C; ++c) {
    stats[c] = sum[c] / count;
    stats[C + c] = 1 / std::sqrt(std::max(0.0, squares[c] / count - stats[c] * stats[c]) + d.epsilon);
  }
  return stats;
}

// Statistics of a group that contains this micro-batch: any mean, any positive variance.
std::vector<double> input(const InputDraw& draw) {
  const auto& d = std::get<NormDims>(draw.spec.dims);
  const auto C = static_cast<std::size_t>(d.C);
  if (draw.arg.name == "var") return draw.affine(0.5, 1);
  if (draw.arg.name == "stats") {
    if (draw.spec.kind == OpKind::norm_local_backward) return true_stats(d, draw.before[0]);
    std::vector<double> stats = draw.any();
    for (std::size_t c = C; c < 2 * C; ++c) stats[c] = 1 + 0.5 * stats[c];
    return stats;
  }
  if (draw.arg.name != "sums") return draw.any();
  const double count = group_count(d, draw.trial);
  const std::vector<double> random = draw.any();
  std::vector<double> sums = draw.affine(count, 0);
  if (draw.spec.kind == OpKind::norm_normalise || draw.spec.kind == OpKind::norm_renorm)
    for (std::size_t c = 0; c < C; ++c) {
      const double mean = random[c], var = 1 + 0.5 * random[C + c];
      sums[C + c] = (var + mean * mean) * count;
    }
  return sums;
}

// Zeroes the gradient at ReLU units that rounding could turn on or off.
void clear_kinks(const OpSpec& spec, Values& inputs) {
  const auto& d = std::get<NormDims>(spec.dims);
  const std::vector<ArgInfo> args = signature(spec);
  const auto of = [&](std::string_view name) { return static_cast<std::size_t>(argument_index(args, name)); };
  if (!d.relu || argument_index(args, "dy") < 0) return;
  const double near = is_half(spec.dtype) ? 2e-2 : 1e-4;
  const std::vector<double>&x = inputs[of("x")], &stats = inputs[of("stats")];
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto c = i / static_cast<std::size_t>(d.H * d.W) % static_cast<std::size_t>(d.C);
    const double xhat = (x[i] - stats[c]) * stats[static_cast<std::size_t>(d.C) + c];
    if (std::fabs(inputs[of("gamma")][c] * xhat + inputs[of("beta")][c]) < near) inputs[of("dy")][i] = 0;
  }
}

}  // namespace

OpCases norm_cases() {
  return {.specs = specs_of, .input = input, .clear_kinks = clear_kinks, .own_count = [](const OpSpec& spec) {
            return own_count(std::get<NormDims>(spec.dims));
          }};
}

}  // namespace echelon::verify
