// Records that lie together in a file, read at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/dataset.hpp"
#include "h5/file.hpp"

namespace echelon::inline data {

// One record, as stored; memory of its chunk.
struct Record {
  const std::uint8_t* sample = nullptr;  // samples: (C, H, W), u8 or f32; text: T + 1 tokens, i32; sequences and pairs:
                                         // `length` tokens, i32, or rows of F numbers, f32
  std::int64_t length = 0;               // of sequences and pairs, uncut
  const std::int32_t* target = nullptr;  // of pairs
  std::int64_t target_length = 0;        // uncut, without start and end
  std::int32_t label = 0;                // of samples and sequences: the class, or
  const float* numbers = nullptr;        // label_shape numbers
  std::size_t file = 0;
};

struct Chunk {
  std::int64_t begin = 0, end = 0;  // global ids
  std::size_t file = 0;
  std::vector<std::uint8_t> rows;  // samples, tokens or values
  std::vector<std::int32_t> labels;
  std::vector<float> numbers;
  std::vector<std::int32_t> targets;

  // Record `id` of [begin, end).
  Record record(const Dataset& dataset, std::int64_t id) const;
};

// Fills the chunk from begin, end and file. DataError names file and record: a label outside [0, classes) or not a
// finite number, a feature that is not a finite number, a token outside the vocabulary, a file that changed.
// MemoryError names the file.
void load_chunk(const Dataset& dataset, const h5::Reader& reader, Chunk& chunk);

}  // namespace echelon::inline data
