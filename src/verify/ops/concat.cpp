// SPDX-License-Identifier: Apache-2.0
// Contract cases of concatenations.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  const ConcatDims concats[] = {{2, 5, 3, {3}},         {2, 3, 5, {16, 32}},      {1, 4, 4, {1, 1, 1}},
                                {2, 3, 3, {7, 16, 20}}, {3, 1, 1, {5, 8, 17, 2}}, {2, 2, 2, {1, 2, 3, 4, 5, 6, 7}},
                                {2, 2, 3, {24, 8, 8}},  {2, 14, 14, {32, 16, 20}}};
  for (const ConcatDims& d : concats) specs.push_back({OpKind::concat, dtype, d, {}});
  return specs;
}

}  // namespace

OpCases concat_cases() { return {.specs = specs_of}; }

}  // namespace echelon::verify
