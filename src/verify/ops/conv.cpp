// SPDX-License-Identifier: Apache-2.0
// Contract cases of convolutions.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  const ConvDims rows[] = {
      {.N = 2, .C = 1, .in = {8, 8}, .K = 16, .kernel = {3, 3}, .pad = {1, 1}},
      {.N = 3, .C = 1, .in = {28, 28}, .K = 20, .kernel = {5, 5}},
      {.N = 2, .C = 20, .in = {12, 12}, .K = 50, .kernel = {5, 5}},
      {.N = 1, .C = 1, .in = {1, 1}, .K = 1, .kernel = {1, 1}},
      {.N = 1, .C = 3, .in = {7, 9}, .K = 5, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}},
      {.N = 2, .C = 17, .in = {6, 5}, .K = 33, .kernel = {1, 1}},
      {.N = 2, .C = 9, .in = {7, 7}, .K = 18, .kernel = {1, 1}, .stride = {2, 2}, .bias = false},
      {.N = 2, .C = 8, .in = {9, 9}, .K = 16, .kernel = {3, 3}, .pad = {2, 2}, .dil = {2, 2}},
      {.N = 2, .C = 3, .in = {9, 8}, .K = 4, .kernel = {2, 3}, .dil = {3, 2}},
      {.N = 2, .C = 6, .in = {8, 7}, .K = 9, .kernel = {3, 3}, .pad = {1, 1}, .groups = 3},
      {.N = 2, .C = 16, .in = {6, 6}, .K = 32, .kernel = {3, 3}, .pad = {1, 1}, .groups = 2, .bias = false},
      {.N = 2, .C = 10, .in = {7, 7}, .K = 10, .kernel = {3, 3}, .pad = {1, 1}, .groups = 10, .bias = false},
      {.N = 1, .C = 4, .in = {6, 6}, .K = 8, .kernel = {3, 3}, .stride = {2, 2}, .groups = 4},
      {.N = 2, .C = 5, .in = {11, 4}, .K = 7, .kernel = {5, 2}, .stride = {3, 1}, .pad = {2, 0}, .bias = false},
      {.N = 2, .C = 16, .in = {17, 17}, .K = 17, .kernel = {3, 3}, .pad = {1, 1}},
      {.N = 5, .C = 65, .in = {4, 4}, .K = 65, .kernel = {3, 3}, .pad = {1, 1}},
      {.N = 1, .C = 3, .in = {32, 33}, .K = 16, .kernel = {7, 7}, .stride = {2, 2}, .pad = {3, 3}},
      {.N = 2, .C = 2, .in = {5, 5}, .K = 3, .kernel = {3, 3}, .pad = {2, 2}},
      {.N = 2, .C = 16, .in = {9, 2}, .K = 16, .kernel = {3, 3}, .stride = {3, 3}, .pad = {1, 1}},
      {.N = 33, .C = 2, .in = {4, 3}, .K = 2, .kernel = {4, 3}},
      // Volumes.
      {.N = 2, .C = 3, .in = {5, 6, 7}, .K = 4, .kernel = {3, 2, 3}, .stride = {2, 1, 2}, .pad = {1, 0, 1}},
      {.N = 1, .C = 16, .in = {4, 7, 5}, .K = 17, .kernel = {3, 3, 3}, .pad = {1, 1, 1}},
      {.N = 2, .C = 1, .in = {7, 5, 9}, .K = 16, .kernel = {2, 3, 4}, .dil = {3, 1, 2}},
      {.N = 2, .C = 6, .in = {7, 6, 5}, .K = 9, .kernel = {3, 3, 3}, .pad = {2, 2, 2}, .dil = {2, 2, 2}, .groups = 3},
      {.N = 2, .C = 10, .in = {5, 5, 6}, .K = 10, .kernel = {3, 3, 3}, .pad = {1, 1, 1}, .groups = 10, .bias = false},
      {.N = 2, .C = 9, .in = {3, 4, 5}, .K = 18, .kernel = {1, 1, 1}, .stride = {2, 2, 2}, .bias = false},
      {.N = 1, .C = 32, .in = {5, 4, 3}, .K = 32, .kernel = {1, 3, 5}, .stride = {1, 3, 1}, .pad = {0, 1, 2}},
      // Series.
      {.N = 3, .C = 5, .in = {17}, .K = 7, .kernel = {3}, .stride = {2}, .pad = {1}},
      {.N = 2, .C = 16, .in = {20}, .K = 32, .kernel = {5}, .pad = {4}, .dil = {2}},
      {.N = 2, .C = 12, .in = {9}, .K = 12, .kernel = {3}, .pad = {1}, .groups = 12},
      {.N = 2, .C = 6, .in = {11}, .K = 4, .kernel = {4}, .groups = 2, .bias = false},
  };
  for (const ConvDims& d : rows)
    for (OpKind kind : {OpKind::conv_forward, OpKind::conv_backward_data, OpKind::conv_backward_weights})
      specs.push_back({kind, dtype, d, {}});
  return specs;
}

}  // namespace

OpCases conv_cases() { return {.specs = specs_of}; }

}  // namespace echelon::verify
