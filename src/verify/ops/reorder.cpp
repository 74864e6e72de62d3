// SPDX-License-Identifier: Apache-2.0
// Contract cases of reorders.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  for (const Shape& shape : {Shape{2, 17, 5, 3}, Shape{1, 1, 4, 4}, Shape{3, 16, 2, 2}, Shape{2, 3, 7, 5}})
    specs.push_back({OpKind::reorder, dtype, ReorderDims{shape}, {}});
  if (!is_half(dtype)) return specs;
  for (const Shape& shape : {Shape{2, 17, 5, 3}, Shape{3, 7}, Shape{4, 16, 3, 3}})
    specs.insert(specs.end(), {{OpKind::reorder, dtype, ReorderDims{shape, DType::f32}, {}},
                               {OpKind::reorder, DType::f32, ReorderDims{shape, dtype}, {}}});
  return specs;
}

}  // namespace

OpCases reorder_cases() { return {.specs = specs_of}; }

}  // namespace echelon::verify
