// SPDX-License-Identifier: Apache-2.0
// Contract cases of steps placed in sequences.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  for (const PlaceStepDims& d : {PlaceStepDims{1, 1, 1, 0}, PlaceStepDims{4, 3, 17, 1}, PlaceStepDims{9, 5, 8, 4, true},
                                 PlaceStepDims{7, 4, 33, 0, true, 2}})
    specs.push_back({OpKind::place_step, dtype, d, {}});
  return specs;
}

std::vector<double> input(const InputDraw& draw) {
  const auto& d = std::get<PlaceStepDims>(draw.spec.dims);
  return draw.arg.name == "lengths" ? draw.integers(1, d.first + d.T) : draw.any();
}

}  // namespace

OpCases place_step_cases() { return {.specs = specs_of, .input = input}; }

}  // namespace echelon::verify
