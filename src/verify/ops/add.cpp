// SPDX-License-Identifier: Apache-2.0
// Contract cases of sums of two tensors.
#include <algorithm>

#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  for (const Shape& shape :
       {Shape{2, 17, 5, 3}, Shape{1, 1, 4, 4}, Shape{3, 16, 2, 2}, Shape{2, 3, 7, 5}, Shape{3, 7}, Shape{1}})
    for (const OpSpec& spec : {OpSpec{OpKind::add, dtype, ElementwiseDims{shape}, {}},
                               OpSpec{OpKind::add, dtype, ElementwiseDims{.shape = shape, .relu = true}, {}},
                               OpSpec{OpKind::masked_add, dtype, ElementwiseDims{shape}, {}}})
      specs.push_back(spec);
  return specs;
}

std::vector<double> input(const InputDraw& draw) {
  std::vector<double> values = draw.any();
  if (draw.arg.name == "mask")
    for (double& value : values) value = std::max(0.0, value);
  return values;
}

}  // namespace

OpCases add_cases() { return {.specs = specs_of, .input = input}; }

}  // namespace echelon::verify
