// SPDX-License-Identifier: Apache-2.0
// Weights as 8-bit numbers. Each row of a matrix (rows, ..) is q s with integers q in [-127, 127] and a scale s = max
// |w| / 127; q is w / s rounded to nearest, ties to even, so that |w - q s| <= s / 2. A row is an output channel of a
// convolution or dense layer, a unit of a gate of a recurrent layer, or a token of an embedding. Biases and norms do
// not change. Everything is computed in floating point from q s: this saves space, not time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/arenas.hpp"
#include "model/graph.hpp"

namespace echelon::inline checkpoint {

struct QuantisedRows {
  std::vector<std::int8_t> values;  // (rows, ..)
  std::vector<float> scales;        // (rows); 1 for a row of zeros
};
// Throws NumericError for values that are not finite.
QuantisedRows quantise_rows(std::span<const float> values, std::int64_t rows);

// Returns the names of the parameters of a whole model that are matrices.
std::vector<std::string> matrices_of(const Graph& graph);

struct WeightBytes {
  std::int64_t plain = 0;  // all parameters in the arenas' dtype
  std::int64_t int8 = 0;   // matrices in 8 bits with scales in f32, the others unchanged
};
// Replaces the matrices of a model by q s, equally on every rank. Returns the size of both forms in a file.
WeightBytes quantise(Arenas& arenas, const Graph& graph);

}  // namespace echelon::inline checkpoint
