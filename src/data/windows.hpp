// SPDX-License-Identifier: Apache-2.0
// How many steps a sample has: texts and series are cut into windows, sequences are padded and truncated.
#pragma once

#include <cstdint>

#include "data/dataset.hpp"

namespace echelon::inline data {

// Sets T of a data set whose files are open, as data.sequence_length requests (0: 64 for windows, else the longest
// sequence). Texts, and series of a stream, become samples of at most T steps. ConfigError where the data have no
// steps, or where a series has no label for each; DataError for a text that is shorter than a window.
void choose_length(Dataset& dataset, std::int64_t requested);

// Gives samples T steps.
void set_length(Dataset& dataset, std::int64_t steps);

}  // namespace echelon::inline data
