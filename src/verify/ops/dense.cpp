// SPDX-License-Identifier: Apache-2.0
// Contract cases of dense layers.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  const DenseDims rows[] = {
      {.N = 1, .F = 1, .K = 1},   {.N = 3, .F = 17, .K = 10},  {.N = 16, .F = 129, .K = 65, .bias = false},
      {.N = 2, .F = 800, .K = 9}, {.N = 65, .F = 33, .K = 17}, {.N = 1, .F = 40, .K = 500},
  };
  for (const DenseDims& d : rows)
    for (OpKind kind : {OpKind::dense_forward, OpKind::dense_backward_data, OpKind::dense_backward_weights})
      specs.push_back({kind, dtype, d, {}});
  return specs;
}

}  // namespace

OpCases dense_cases() { return {.specs = specs_of}; }

}  // namespace echelon::verify
