// SPDX-License-Identifier: Apache-2.0
// Contract cases of pools of sequences.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  for (SequencePool mode : {SequencePool::sum, SequencePool::mean, SequencePool::last})
    for (const SequencePoolDims& d : {SequencePoolDims{1, 1, 1, mode}, SequencePoolDims{3, 7, 17, mode, true},
                                      SequencePoolDims{2, 33, 5, mode}, SequencePoolDims{9, 20, 129, mode, true}})
      for (OpKind kind : {OpKind::sequence_pool_forward, OpKind::sequence_pool_backward})
        specs.push_back({kind, dtype, d, {}});
  return specs;
}

std::vector<double> input(const InputDraw& draw) {
  const bool lengths = draw.arg.name == "lengths";
  return lengths ? draw.integers(1, std::get<SequencePoolDims>(draw.spec.dims).T) : draw.any();
}

}  // namespace

OpCases sequence_pool_cases() { return {.specs = specs_of, .input = input}; }

}  // namespace echelon::verify
