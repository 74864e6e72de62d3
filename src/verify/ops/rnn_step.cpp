// SPDX-License-Identifier: Apache-2.0
// Contract cases of single steps of recurrent layers.
#include <cmath>

#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  const RnnStepDims rows[] = {
      {.N = 1, .T = 1, .H = 1, .U = 1},
      {.N = 3, .T = 4, .H = 9, .U = 4, .begin = 5, .t = 2, .dy = false},
      {.N = 5, .T = 3, .H = 33, .U = 33, .t = 1, .lengths = true},
      {.N = 9, .T = 5, .H = 70, .U = 23, .begin = 17, .t = 4, .lengths = true, .first = 3},
      {.N = 20, .T = 2, .H = 65, .U = 40, .begin = 25},
  };
  for (RnnStepDims d : rows)
    for (Cell cell : {Cell::tanh, Cell::relu, Cell::lstm, Cell::gru}) {
      d.cell = cell;
      for (OpKind kind : {OpKind::rnn_step_forward, OpKind::rnn_step_backward}) specs.push_back({kind, dtype, d, {}});
    }
  return specs;
}

std::vector<double> input(const InputDraw& draw) {
  const auto& d = std::get<RnnStepDims>(draw.spec.dims);
  if (draw.arg.name == "lengths") return draw.integers(1, d.first + d.T);
  if (draw.arg.name == "weight_h") return draw.affine(1.5 / std::sqrt(static_cast<double>(d.H)), 0);
  return draw.any();
}

}  // namespace

OpCases rnn_step_cases() { return {.specs = specs_of, .input = input}; }

}  // namespace echelon::verify
