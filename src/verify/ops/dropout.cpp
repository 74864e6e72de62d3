// SPDX-License-Identifier: Apache-2.0
// Contract cases of dropout.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  for (const Shape& shape : {Shape{3, 17, 5, 3}, Shape{1, 1, 4, 4}, Shape{2, 32, 6, 6}, Shape{5, 301}})
    for (double rate : {0.0, 0.5, 0.25}) specs.push_back({OpKind::dropout, dtype, DropoutDims{shape, rate}, {}});
  for (const Shape& shape : {Shape{3, 17, 5, 3}, Shape{2, 32, 6, 6}})  // parts of the rows of taller images
    specs.push_back({OpKind::dropout, dtype, DropoutDims{shape, 0.25, 7, 50}, {}});
  return specs;
}

}  // namespace

OpCases dropout_cases() { return {.specs = specs_of}; }

}  // namespace echelon::verify
