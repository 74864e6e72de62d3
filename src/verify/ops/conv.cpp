// SPDX-License-Identifier: Apache-2.0
// Contract cases of convolutions.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  const ConvDims rows[] = {
      {.N = 2, .C = 1, .H = 8, .W = 8, .K = 16, .R = 3, .S = 3, .pad_h = 1, .pad_w = 1},
      {.N = 3, .C = 1, .H = 28, .W = 28, .K = 20, .R = 5, .S = 5},
      {.N = 2, .C = 20, .H = 12, .W = 12, .K = 50, .R = 5, .S = 5},
      {.N = 1, .C = 1, .H = 1, .W = 1, .K = 1, .R = 1, .S = 1},
      {.N = 1, .C = 3, .H = 7, .W = 9, .K = 5, .R = 3, .S = 3, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1},
      {.N = 2, .C = 17, .H = 6, .W = 5, .K = 33, .R = 1, .S = 1},
      {.N = 2, .C = 9, .H = 7, .W = 7, .K = 18, .R = 1, .S = 1, .stride_h = 2, .stride_w = 2, .bias = false},
      {.N = 2, .C = 8, .H = 9, .W = 9, .K = 16, .R = 3, .S = 3, .pad_h = 2, .pad_w = 2, .dil_h = 2, .dil_w = 2},
      {.N = 2, .C = 3, .H = 9, .W = 8, .K = 4, .R = 2, .S = 3, .dil_h = 3, .dil_w = 2},
      {.N = 2, .C = 6, .H = 8, .W = 7, .K = 9, .R = 3, .S = 3, .pad_h = 1, .pad_w = 1, .groups = 3},
      {.N = 2, .C = 16, .H = 6, .W = 6, .K = 32, .R = 3, .S = 3, .pad_h = 1, .pad_w = 1, .groups = 2, .bias = false},
      {.N = 2, .C = 10, .H = 7, .W = 7, .K = 10, .R = 3, .S = 3, .pad_h = 1, .pad_w = 1, .groups = 10, .bias = false},
      {.N = 1, .C = 4, .H = 6, .W = 6, .K = 8, .R = 3, .S = 3, .stride_h = 2, .stride_w = 2, .groups = 4},
      {.N = 2, .C = 5, .H = 11, .W = 4, .K = 7, .R = 5, .S = 2, .stride_h = 3, .pad_h = 2, .bias = false},
      {.N = 2, .C = 16, .H = 17, .W = 17, .K = 17, .R = 3, .S = 3, .pad_h = 1, .pad_w = 1},
      {.N = 5, .C = 65, .H = 4, .W = 4, .K = 65, .R = 3, .S = 3, .pad_h = 1, .pad_w = 1},
      {.N = 1, .C = 3, .H = 32, .W = 33, .K = 16, .R = 7, .S = 7, .stride_h = 2, .stride_w = 2, .pad_h = 3, .pad_w = 3},
      {.N = 2, .C = 2, .H = 5, .W = 5, .K = 3, .R = 3, .S = 3, .pad_h = 2, .pad_w = 2},
      {.N = 2, .C = 16, .H = 9, .W = 2, .K = 16, .R = 3, .S = 3, .stride_h = 3, .stride_w = 3, .pad_h = 1, .pad_w = 1},
      {.N = 33, .C = 2, .H = 4, .W = 3, .K = 2, .R = 4, .S = 3},
  };
  for (const ConvDims& d : rows)
    for (OpKind kind : {OpKind::conv_forward, OpKind::conv_backward_data, OpKind::conv_backward_weights})
      specs.push_back({kind, dtype, d, {}});
  return specs;
}

}  // namespace

OpCases conv_cases() { return {.specs = specs_of}; }

}  // namespace echelon::verify
