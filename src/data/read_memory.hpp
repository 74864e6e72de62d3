// The host memory that a rank needs to read its samples, worked out from the headers of the files.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/dtype.hpp"
#include "data/dataset.hpp"

namespace echelon::inline data {

struct ReadMemory {
  double records = 0;    // bytes of decoded chunks that are held
  double decoding = 0;   // of buffers while a chunk is read
  double batches = 0;    // that are read ahead
  bool at_once = false;  // the whole set is one chunk, which is decoded before there is a batch
  double total() const { return records + (at_once ? std::max(decoding, batches) : decoding + batches); }
};

// The memory of one loader with this buffer, batches of `n` samples and so many of them ahead. DataError where a file
// cannot be read.
ReadMemory read_memory(const Dataset& dataset, std::int64_t buffer_bytes, std::int64_t n, std::int64_t prefetch,
                       DType dtype);

}  // namespace echelon::inline data
