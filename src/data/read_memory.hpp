// SPDX-License-Identifier: Apache-2.0
// The host memory that a rank needs to read its samples, computed from the headers of the files.
#pragma once

#include <algorithm>
#include <cstdint>

#include "data/dataset.hpp"
#include "data/loader.hpp"

namespace echelon::inline data {

struct ReadMemory {
  double records = 0;    // decoded chunks that are held
  double decoding = 0;   // buffers while a chunk is read
  double making = 0;     // of the threads that make samples: decoded images, samples between two changes, stored bytes
  double batches = 0;    // batches that are read ahead
  bool at_once = false;  // the whole set is one chunk, which is decoded before the first batch
  double total() const {
    return records + (at_once ? std::max(decoding, making + batches) : decoding + making + batches);
  }
};

// Returns the memory of one loader with batches of `n` samples. Encoded images are taken to be as large as the first
// one. Throws DataError if a file cannot be read.
ReadMemory read_memory(const Dataset& dataset, std::int64_t n, const LoaderOptions& options);

}  // namespace echelon::inline data
