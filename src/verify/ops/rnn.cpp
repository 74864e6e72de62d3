// SPDX-License-Identifier: Apache-2.0
// Contract cases of recurrent layers.
#include <cmath>

#include "verify/device_cases.hpp"
#include "verify/device_contract.hpp"
#include "verify/oracle.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  const RnnDims rows[] = {
      {.N = 1, .T = 1, .F = 1, .H = 1},
      {.N = 3, .T = 5, .F = 7, .H = 9, .initial = true, .dhn = true, .dcn = true},
      {.N = 2, .T = 6, .F = 17, .H = 16, .reverse = true, .dy = false, .dhn = true},
      {.N = 5, .T = 4, .F = 3, .H = 33, .initial = true, .lengths = true, .dhn = true, .dcn = true},
      {.N = 4, .T = 7, .F = 8, .H = 11, .reverse = true, .initial = true, .lengths = true, .dcn = true},
      {.N = 9, .T = 3, .F = 65, .H = 40, .lengths = true},
      {.N = 31, .T = 3, .F = 5, .H = 70, .initial = true},
      {.N = 50, .T = 5, .F = 34, .H = 18, .lengths = true},  // more rows than an implementation may take at a time
      {.N = 70, .T = 3, .F = 9, .H = 20, .reverse = true, .initial = true},
  };
  for (RnnDims d : rows)
    for (Cell cell : {Cell::tanh, Cell::relu, Cell::lstm, Cell::gru}) {
      d.cell = cell;
      d.dcn = d.dcn && d.has_c();
      for (OpKind kind : {OpKind::rnn_forward, OpKind::rnn_backward}) specs.push_back({kind, dtype, d, {}});
    }
  return specs;
}

// Weights that keep states of size 1. A backward op gets exactly the y of its inputs. In halves each unit of relu is
// clearly on or off: at a kink rounding would decide, and the gradient could be anything.
std::vector<double> input(const InputDraw& draw) {
  const auto& d = std::get<RnnDims>(draw.spec.dims);
  const bool no_kinks = is_half(draw.spec.dtype) && d.cell == Cell::relu;
  if (draw.arg.name == "lengths")
    return draw.integers(1, d.first + d.T + (d.first > 0 ? 2 : 0));  // may end after the chunk
  if (draw.arg.name == "weight_x" || draw.arg.name == "weight_h")
    return draw.affine((no_kinks ? 0.3 : 1.5) / std::sqrt(static_cast<double>(draw.arg.shape[1])), 0);
  if (draw.arg.name == "bias_x" && no_kinks) {
    std::vector<double> bias = draw.any();
    for (double& value : bias) value += value < 0 ? -3 : 3;
    return bias;
  }
  if (draw.arg.name != "y") return draw.any();
  OpSpec forward = draw.spec;
  forward.kind = OpKind::rnn_forward;
  forward.dtype = DType::f64;
  return oracle_outputs(forward, draw.before)[0];
}

}  // namespace

std::vector<OpSpec> chunk_specs(DType dtype) {
  std::vector<OpSpec> specs;
  for (Cell cell : {Cell::tanh, Cell::relu, Cell::lstm, Cell::gru})
    for (const std::int64_t first : {std::int64_t{1}, std::int64_t{4}}) {
      RnnDims d{.N = 9, .T = 3, .F = 6, .H = 17, .cell = cell, .initial = true, .lengths = true, .first = first};
      d.dhn = true, d.dcn = d.has_c();
      for (OpKind kind : {OpKind::rnn_forward, OpKind::rnn_backward}) specs.push_back({kind, dtype, d, {}});
    }
  return specs;
}

// Twice the tolerance in halves, because the state is rounded at every step, and so is all that follows from it.
OpCases rnn_cases() {
  return {
      .specs = specs_of, .input = input, .twin = Twin{OpKind::rnn_backward, OpKind::rnn_forward}, .half_tolerance = 2};
}

}  // namespace echelon::verify
