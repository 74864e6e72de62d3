// SPDX-License-Identifier: Apache-2.0
// Contract cases of local response normalisation.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  const LrnDims rows[] = {
      {.N = 2, .C = 17, .H = 5, .W = 3, .size = 5, .alpha = 0.8, .beta = 0.75, .k = 2},
      {.N = 1, .C = 3, .H = 4, .W = 4, .size = 5, .alpha = 1, .beta = 0.75, .k = 1},
      {.N = 2, .C = 16, .H = 7, .W = 5, .size = 4, .alpha = 0.5, .beta = 0.6, .k = 1.5},
      {.N = 3, .C = 32, .H = 1, .W = 1, .size = 3, .alpha = 1, .beta = 1, .k = 1},
      {.N = 1, .C = 1, .H = 3, .W = 2, .size = 1, .alpha = 1, .beta = 0.75, .k = 1},
      {.N = 2, .C = 32, .H = 17, .W = 19, .size = 5},
  };
  for (const LrnDims& d : rows)
    for (OpKind kind : {OpKind::lrn_forward, OpKind::lrn_backward}) specs.push_back({kind, dtype, d, {}});
  return specs;
}

}  // namespace

OpCases lrn_cases() { return {.specs = specs_of}; }

}  // namespace echelon::verify
