// SPDX-License-Identifier: Apache-2.0
// Contract cases of embeddings.
#include "verify/device_cases.hpp"

namespace echelon::verify {
namespace {

std::vector<OpSpec> specs_of(DType dtype) {
  std::vector<OpSpec> specs;
  for (const EmbeddingDims& d : {EmbeddingDims{1, 1, 1}, EmbeddingDims{40, 7, 17}, EmbeddingDims{5, 300, 8},
                                 EmbeddingDims{200, 65, 64}, EmbeddingDims{1500, 3, 9}})
    for (OpKind kind : {OpKind::embedding_forward, OpKind::embedding_backward}) specs.push_back({kind, dtype, d, {}});
  for (EmbeddingDims d : {EmbeddingDims{1, 1, 1}, EmbeddingDims{40, 7, 17}, EmbeddingDims{5, 300, 8},
                          EmbeddingDims{70, 64, 3}, EmbeddingDims{3, 31, 2}}) {
    d.sparse = true;
    specs.push_back({OpKind::embedding_backward, dtype, d, {}});
    d.first = 5;  // so that some ids have no row here
    specs.push_back({OpKind::embedding_backward, dtype, d, {}});
    d.sparse = false;
    for (OpKind kind : {OpKind::embedding_forward, OpKind::embedding_backward}) specs.push_back({kind, dtype, d, {}});
  }
  return specs;
}

std::vector<double> input(const InputDraw& draw) {
  const auto& d = std::get<EmbeddingDims>(draw.spec.dims);
  return draw.arg.name == "ids" ? draw.integers(0, 2 * d.first + d.V - 1) : draw.any();
}

}  // namespace

OpCases embedding_cases() { return {.specs = specs_of, .input = input}; }

}  // namespace echelon::verify
