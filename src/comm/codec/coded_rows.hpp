// SPDX-License-Identifier: Apache-2.0
// Which values of the arenas a codec that goes by rows (onebit) encodes together, and the bytes of its messages.
#pragma once

#include <vector>

#include "comm/codec/codec.hpp"
#include "device/parameter.hpp"

namespace echelon::inline comm {

// Vectors, shorter rows, and smaller tensors that are a smaller part of the parameters travel as they are: that takes
// little, and coarse steps of a model's first and last layers cost most.
inline constexpr std::int64_t kLeastCodedTensor = 4096, kLeastCodedPart = 16, kLeastCodedRow = 8;

// The coded rows of a range of the arenas. A row is what one index of a parameter's first axis holds: the weights of
// one unit, the vector of one word. A range may begin and end within rows. Running statistics, at whose indices a codec
// finds zeros, are rows, which take less room.
std::vector<CodedRun> coded_rows(const ParameterSet& parameters, ArenaRange range);

// Bytes of a message of onebit of these rows, and of one of a range of the arenas: exact. Ranges that meet between two
// parameters have as many bytes together as the range that both make up.
std::size_t onebit_bytes(const CodedRun& run);
std::size_t onebit_bytes(const ParameterSet& parameters, ArenaRange range);

}  // namespace echelon::inline comm
