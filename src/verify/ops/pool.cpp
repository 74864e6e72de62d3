// SPDX-License-Identifier: Apache-2.0
// Contract cases of pools.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  const PoolDims rows[] = {
      {.N = 2, .C = 20, .in = {24, 24}, .kernel = {2, 2}, .stride = {2, 2}},
      {.N = 2, .C = 17, .in = {9, 11}, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}},
      {.N = 1, .C = 1, .in = {7, 6}, .kernel = {2, 2}, .stride = {2, 2}},
      {.N = 3, .C = 5, .in = {6, 7}, .kernel = {2, 3}, .stride = {1, 2}},
      {.N = 2, .C = 33, .in = {7, 7}, .kernel = {7, 7}},
      {.N = 2, .C = 8, .in = {8, 9}, .kernel = {2, 2}, .stride = {3, 3}},
      {.N = 1, .C = 16, .in = {5, 5}, .kernel = {3, 3}, .pad = {1, 1}},
      {.N = 1, .C = 3, .in = {4, 1}, .kernel = {3, 1}, .stride = {3, 1}, .pad = {2, 0}},
      {.N = 2, .C = 9, .in = {6, 5}, .kernel = {3, 3}, .stride = {2, 1}, .pad = {0, 1}, .more_behind = 1},
      {.N = 2, .C = 16, .in = {5, 7}, .kernel = {3, 2}, .pad = {2, 0}, .more_behind = -1},
      {.N = 1, .C = 4, .in = {6, 4}, .kernel = {2, 2}, .stride = {2, 2}, .pad = {1, 0}, .more_behind = -1},
      {.N = 2, .C = 8, .in = {3, 4}, .kernel = {2, 2}, .stride = {2, 2}, .more_behind = 1},
      {.N = 2, .C = 18, .in = {17, 17}, .kernel = {17, 17}},
      // Volumes.
      {.N = 2, .C = 17, .in = {6, 4, 8}, .kernel = {2, 2, 2}, .stride = {2, 2, 2}},
      {.N = 2, .C = 9, .in = {5, 7, 6}, .kernel = {3, 2, 3}, .stride = {2, 1, 2}, .pad = {1, 0, 1}},
      {.N = 1, .C = 16, .in = {4, 5, 3}, .kernel = {3, 3, 2}, .pad = {1, 2, 1}, .more_behind = 1},
      {.N = 2, .C = 8, .in = {5, 4, 4}, .kernel = {2, 2, 1}, .stride = {2, 2, 1}, .pad = {1, 0, 0}, .more_behind = -1},
      {.N = 2, .C = 33, .in = {7, 5, 9}, .kernel = {7, 5, 9}},
      // Series.
      {.N = 3, .C = 5, .in = {17}, .kernel = {3}, .stride = {2}, .pad = {1}},
      {.N = 2, .C = 4, .in = {12}, .kernel = {3}, .stride = {3}, .more_behind = 1},
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
  PoolDims whole = {.N = 1, .C = 1, .in = {260, 253}, .kernel = {260, 253}};
  for (whole.mode = PoolMode::max; const OpKind kind : {OpKind::pool_forward, OpKind::pool_backward})
    specs.push_back({kind, dtype, whole, {}});
  return specs;
}

}  // namespace

OpCases pool_cases() { return {.specs = specs_of, .twin = Twin{OpKind::pool_backward, OpKind::pool_forward}}; }

}  // namespace echelon::verify
