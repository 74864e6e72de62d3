// SPDX-License-Identifier: Apache-2.0
// Contract cases of upsampling.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  const UpsampleDims rows[] = {
      {.N = 2, .C = 17, .in = {3, 5}, .factor = {2, 2}},       {.N = 1, .C = 1, .in = {1, 1}, .factor = {3, 2}},
      {.N = 3, .C = 8, .in = {7, 4}, .factor = {1, 3}},        {.N = 2, .C = 9, .in = {3, 2, 4}, .factor = {2, 3, 2}},
      {.N = 1, .C = 16, .in = {2, 3, 1}, .factor = {4, 1, 2}}, {.N = 2, .C = 5, .in = {11}, .factor = {4}},
  };
  for (UpsampleDims d : rows)
    for (const bool linear : {false, true})
      for (OpKind kind : {OpKind::upsample_forward, OpKind::upsample_backward}) {
        d.linear = linear;
        specs.push_back({kind, dtype, d, {}});
      }
  return specs;
}

}  // namespace

OpCases upsample_cases() { return {.specs = specs_of}; }

}  // namespace echelon::verify
