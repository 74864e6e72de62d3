// SPDX-License-Identifier: Apache-2.0
// Generated pairs of texts: `echelon data synth --kind numbers`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/import/sequence_source.hpp"

namespace echelon::inline data {

// English words of a number from 0 to 999,999: {"four", "hundred", "seven"}.
std::vector<std::string> number_words(std::int64_t number);

// Returns numbers with 1 to 6 digits, each length equally often, and their words: sources are digits, targets words.
// They are functions of seed and index. Throws ConfigError for less than one sample.
std::unique_ptr<SequenceSource> make_number_pairs(std::int64_t samples, std::uint64_t seed);

}  // namespace echelon::inline data
