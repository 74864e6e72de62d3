// Contract cases of sums of two tensors.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  for (const Shape& shape :
       {Shape{2, 17, 5, 3}, Shape{1, 1, 4, 4}, Shape{3, 16, 2, 2}, Shape{2, 3, 7, 5}, Shape{3, 7}, Shape{1}})
    specs.push_back({OpKind::add, dtype, ElementwiseDims{shape}, {}});
  return specs;
}

}  // namespace

OpCases add_cases() { return {.specs = specs_of}; }

}  // namespace echelon::verify
