// SPDX-License-Identifier: Apache-2.0
// Contract cases of pools.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  const PoolDims rows[] = {
      {.N = 2, .C = 20, .H = 24, .W = 24, .R = 2, .S = 2, .stride_h = 2, .stride_w = 2},
      {.N = 2, .C = 17, .H = 9, .W = 11, .R = 3, .S = 3, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1},
      {.N = 1, .C = 1, .H = 7, .W = 6, .R = 2, .S = 2, .stride_h = 2, .stride_w = 2},
      {.N = 3, .C = 5, .H = 6, .W = 7, .R = 2, .S = 3, .stride_h = 1, .stride_w = 2},
      {.N = 2, .C = 33, .H = 7, .W = 7, .R = 7, .S = 7},
      {.N = 2, .C = 8, .H = 8, .W = 9, .R = 2, .S = 2, .stride_h = 3, .stride_w = 3},
      {.N = 1, .C = 16, .H = 5, .W = 5, .R = 3, .S = 3, .pad_h = 1, .pad_w = 1},
      {.N = 1, .C = 3, .H = 4, .W = 1, .R = 3, .S = 1, .stride_h = 3, .pad_h = 2},
      {.N = 2, .C = 9, .H = 6, .W = 5, .R = 3, .S = 3, .stride_h = 2, .pad_w = 1, .more_below = 1},
      {.N = 2, .C = 16, .H = 5, .W = 7, .R = 3, .S = 2, .pad_h = 2, .more_below = -1},
      {.N = 1, .C = 4, .H = 6, .W = 4, .R = 2, .S = 2, .stride_h = 2, .stride_w = 2, .pad_h = 1, .more_below = -1},
      {.N = 2, .C = 8, .H = 3, .W = 4, .R = 2, .S = 2, .stride_h = 2, .stride_w = 2, .more_below = 1},
      {.N = 2, .C = 18, .H = 17, .W = 17, .R = 17, .S = 17},
  };
  for (PoolDims d : rows)
    for (PoolMode mode : {PoolMode::max, PoolMode::average_inside, PoolMode::average_all})
      for (OpKind kind : {OpKind::pool_forward, OpKind::pool_backward}) {
        d.mode = mode;
        specs.push_back({kind, dtype, d, {}});
        d.relu = mode == PoolMode::max;
        if (d.relu) specs.push_back({kind, dtype, d, {}});
        d.relu = false;
      }
  // A window with more cells than 16 bits can number.
  PoolDims whole = {.N = 1, .C = 1, .H = 260, .W = 253, .R = 260, .S = 253};
  for (whole.mode = PoolMode::max; const OpKind kind : {OpKind::pool_forward, OpKind::pool_backward})
    specs.push_back({kind, dtype, whole, {}});
  return specs;
}

}  // namespace

OpCases pool_cases() { return {.specs = specs_of, .twin = Twin{OpKind::pool_backward, OpKind::pool_forward}}; }

}  // namespace echelon::verify
