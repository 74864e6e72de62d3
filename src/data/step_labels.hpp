// SPDX-License-Identifier: Apache-2.0
// The steps of series in chunks: what records of other files hold beside the windows of a chunk, and a label for each
// step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/chunk.hpp"
#include "data/dataset.hpp"
#include "data/sample_file.hpp"

namespace echelon::inline data {

// The records of a file that is not a shard in which the samples of a chunk lie, by index in the file.
struct ChunkRecords {
  std::int64_t first = 0, count = 0;
};
ChunkRecords records_in(const Dataset& dataset, const Chunk& chunk);

// `rows` holds these records whole, `bytes` for each of Dataset::stored_steps steps. Moves the steps of the chunk's
// samples together at its beginning, and returns how many they are.
std::int64_t keep_steps(const Dataset& dataset, const Chunk& chunk, std::size_t bytes, void* rows);

// "record 3, step 17": where step `at` of the chunk's samples, all in a row, is in its file.
std::string step_text(const Dataset& dataset, const Chunk& chunk, std::int64_t at);

// Reads a label for each step of the chunk's samples into its labels or numbers.
void read_step_labels(const Dataset& dataset, const SampleFile& file, Chunk& chunk);

// The same. DataError with file, record and step for a class outside [0, classes) that is not ignored, and for a number
// that is not finite or outside the range that the loss demands.
void load_step_labels(const Dataset& dataset, const SampleFile& file, Chunk& chunk);

}  // namespace echelon::inline data
