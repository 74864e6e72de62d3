// Weights as 8-bit numbers: of a matrix (rows, ..) each row is q s with integers q in [-127, 127] and a scale
// s = max |w| / 127; q is w / s rounded to the nearest, halves to even, so that |w - q s| <= s / 2. A row is an output
// channel of a convolution or dense layer, a unit of a gate of a recurrent layer, or a token of an embedding. Biases
// and norms stay as they are, and everything is computed in floating point from q s: it saves room, not time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/arenas.hpp"
#include "model/graph.hpp"

namespace echelon::inline checkpoint {

struct QuantisedRows {
  std::vector<std::int8_t> values;  // (rows, ..)
  std::vector<float> scales;        // (rows); 1 where a row is all zeros
};
// NumericError for values that are not finite.
QuantisedRows quantise_rows(std::span<const float> values, std::int64_t rows);

// Names of the parameters of a whole model that are matrices.
std::vector<std::string> matrices_of(const Graph& graph);

struct WeightBytes {
  std::int64_t plain = 0;  // all parameters in the dtype of the arenas
  std::int64_t int8 = 0;   // matrices in 8 bits with their scales in f32, the others as before
};
// Replaces the matrices of a model by q s, on every rank alike. The bytes are what the two forms take in a file.
WeightBytes quantise(Arenas& arenas, const Graph& graph);

}  // namespace echelon::inline checkpoint
