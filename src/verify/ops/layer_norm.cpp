// SPDX-License-Identifier: Apache-2.0
// Contract cases of layer normalisation.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  const LayerNormDims rows[] = {{{3, 17}, 17},          {{1, 1}, 1},      {{2, 5, 33}, 33}, {{2, 3, 4, 5}, 60, .1},
                                {{65, 129}, 129, 1e-3}, {{40, 700}, 700}, {{3, 2064}, 2064}};
  for (const LayerNormDims& d : rows)
    for (OpKind kind : {OpKind::layer_norm_forward, OpKind::layer_norm_backward}) specs.push_back({kind, dtype, d, {}});
  return specs;
}

std::vector<double> input(const InputDraw& draw) {
  std::vector<double> values = draw.any();
  if (draw.arg.name == "stats")  // statistics of rows with any mean and a positive deviation
    for (std::size_t r = values.size() / 2; r < values.size(); ++r) values[r] = 1 + 0.5 * values[r];
  return values;
}

}  // namespace

OpCases layer_norm_cases() { return {.specs = specs_of, .input = input}; }

}  // namespace echelon::verify
