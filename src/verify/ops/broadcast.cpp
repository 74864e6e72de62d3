// SPDX-License-Identifier: Apache-2.0
// Contract cases of tensors added to every sample.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 5, 7}, Shape{9, 300}, Shape{2, 33, 70}})
    for (OpKind kind : {OpKind::broadcast_add, OpKind::sum_samples})
      specs.push_back({kind, dtype, BroadcastDims{shape}, {}});
  for (const Shape& shape : {Shape{3, 5}, Shape{2, 17, 9}, Shape{2, 8, 3, 5}, Shape{3, 9, 2, 4, 3}})
    for (OpKind kind : {OpKind::broadcast_add, OpKind::sum_samples})
      specs.push_back({kind, dtype, BroadcastDims{shape, true}, {}});
  return specs;
}

}  // namespace

OpCases broadcast_cases() { return {.specs = specs_of}; }

}  // namespace echelon::verify
