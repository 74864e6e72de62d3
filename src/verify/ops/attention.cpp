// SPDX-License-Identifier: Apache-2.0
// Contract cases of attention.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  const AttentionDims rows[] = {
      {.N = 1, .T = 1, .S = 1, .D = 1},
      {.N = 2, .T = 5, .S = 7, .D = 12, .heads = 3},
      {.N = 3, .T = 9, .S = 9, .D = 16, .heads = 2, .causal = true},
      {.N = 4, .T = 6, .S = 11, .D = 10, .heads = 5, .lengths = true},
      {.N = 3, .T = 17, .S = 17, .D = 33, .heads = 1, .causal = true, .lengths = true},
      {.N = 2, .T = 8, .S = 16, .D = 32, .heads = 2},
      {.N = 2, .T = 65, .S = 33, .D = 64, .heads = 4},
  };
  for (const AttentionDims& d : rows)
    for (OpKind kind : {OpKind::attention_forward, OpKind::attention_backward}) specs.push_back({kind, dtype, d, {}});
  return specs;
}

std::vector<double> input(const InputDraw& draw) {
  const bool lengths = draw.arg.name == "lengths";
  return lengths ? draw.integers(1, std::get<AttentionDims>(draw.spec.dims).S) : draw.any();
}

}  // namespace

OpCases attention_cases() {
  return {.specs = specs_of, .input = input, .twin = Twin{OpKind::attention_backward, OpKind::attention_forward}};
}

}  // namespace echelon::verify
