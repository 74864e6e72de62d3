// SPDX-License-Identifier: Apache-2.0
// The host memory that a rank needs to read its samples, computed from the headers of the files.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/dtype.hpp"
#include "data/dataset.hpp"

namespace echelon::inline data {

struct ReadMemory {
  double records = 0;    // decoded chunks that are held
  double decoding = 0;   // buffers while a chunk is read
  double batches = 0;    // batches that are read ahead
  bool at_once = false;  // the whole set is one chunk, which is decoded before the first batch
  double total() const { return records + (at_once ? std::max(decoding, batches) : decoding + batches); }
};

// Returns the memory of one loader with this buffer, batches of `n` samples and `prefetch` of them read ahead. Throws
// DataError if a file cannot be read.
ReadMemory read_memory(const Dataset& dataset, std::int64_t buffer_bytes, std::int64_t n, std::int64_t prefetch,
                       DType dtype);

}  // namespace echelon::inline data
