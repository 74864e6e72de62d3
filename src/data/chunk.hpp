// SPDX-License-Identifier: Apache-2.0
// A chunk: consecutive records of a file that are read together. Loaded by load_chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/dataset.hpp"

namespace echelon::inline data {

class SampleFile;

// One record as stored, except that tokens, labels and targets are i32. It points into its chunk.
struct Record {
  const std::uint8_t* sample = nullptr;  // samples: (C, H, W), u8 or f32; text: T + 1 tokens, i32; sequences and pairs:
                                         // `length` tokens, i32, or (length, F), f32; encoded images: their bytes
  std::int64_t length = 0;               // sequences and pairs: length before truncation; encoded images: bytes
  const std::int32_t* target = nullptr;  // pairs: (target_length) tokens
  std::int64_t target_length = 0;        // before truncation, without the start and end token
  const std::int32_t* labels = nullptr;  // classes in the shape Dataset::label_shape, of each of `length` steps if it
                                         // is that of a step; null if `numbers` is set
  float weight = 1;                      // weight of the sample
  const float* numbers = nullptr;        // regression targets, likewise
  std::size_t file = 0;                  // index in Dataset::shards
  std::int64_t index = 0;                // in the file
};

struct Chunk {
  std::int64_t begin = 0, end = 0;  // global ids
  std::size_t file = 0;
  std::vector<std::uint8_t> rows;     // samples, tokens or values
  std::uint8_t* elsewhere = nullptr;  // memory for samples of one shape instead of `rows`; null: none
  std::vector<std::size_t> ends;      // encoded images: where each ends in `rows`
  std::vector<std::int32_t> labels;
  std::vector<float> numbers, weights;
  std::vector<std::int32_t> targets;

  // Returns record `id`, which must be in [begin, end).
  Record record(const Dataset& dataset, std::int64_t id) const;
};

// Reads records [begin, end) of chunk.file from `file`, which has that file open. Throws DataError with file and
// record for a label outside [0, classes), a label, feature or pixel that is not finite, a token outside the
// vocabulary, and a file changed since open_dataset; MemoryError with the file if the host has no memory.
void load_chunk(const Dataset& dataset, const SampleFile& file, Chunk& chunk);

// Throws DataError with file, record, position and value if classes of the records from `first` on, in the shape
// Dataset::label_shape each, are outside [0, classes) and not ignored (Dataset::label_weights).
void require_classes(const Dataset& dataset, const std::string& path, std::int64_t first,
                     const std::vector<std::int32_t>& labels);

// Throws DataError with file and place if numeric labels are not finite or outside the range that the loss demands.
// `place`: from an index in `numbers`, as "record 3".
void require_numbers(const Dataset& dataset, const std::string& path, const std::vector<float>& numbers,
                     const std::function<std::string(std::int64_t)>& place);
// The same for labels in the shape Dataset::label_shape of the records from `first` on.
void require_numbers(const Dataset& dataset, const std::string& path, std::int64_t first,
                     const std::vector<float>& numbers);

}  // namespace echelon::inline data
