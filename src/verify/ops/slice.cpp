// SPDX-License-Identifier: Apache-2.0
// Contract cases of slices of channels.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  const SliceDims slices[] = {{2, 5, 3, 3, 1, 3},    {1, 1, 4, 4, 0, 1},     {2, 48, 3, 5, 16, 32},
                              {2, 48, 3, 5, 16, 20}, {2, 33, 2, 2, 5, 17},   {3, 40, 1, 1, 39, 1},
                              {2, 40, 2, 3, 8, 24},  {2, 64, 14, 14, 0, 48}, {3, 7, 1, 1, 2, 4, true}};
  for (const SliceDims& d : slices) specs.push_back({OpKind::slice, dtype, d, {}});
  return specs;
}

}  // namespace

OpCases slice_cases() { return {.specs = specs_of}; }

}  // namespace echelon::verify
