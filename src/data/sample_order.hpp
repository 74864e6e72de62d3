// SPDX-License-Identifier: Apache-2.0
// The order of records in one epoch. Chunks are permuted, then the records within each window of consecutive chunks, so
// that reading stays sequential within a window.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hash_rng.hpp"

namespace echelon::inline data {

// A chunk: consecutive records of a file, ids [first, first + count).
struct Piece {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

class SampleOrder {
 public:
  // `pieces`: in file order. `window_chunks`: chunks whose records are shuffled together. `rng`: keyed by the epoch.
  // Without `shuffle` the order is that of the files. Memory: O(pieces) and one window of ids.
  SampleOrder(std::vector<Piece> pieces, bool shuffle, std::int64_t window_chunks, HashRng rng);

  std::int64_t samples() const { return starts_.back(); }
  // Returns the id at a position in [0, samples()). O(1) for increasing positions within a window; otherwise the window
  // is permuted again. Not thread-safe.
  std::int64_t at(std::int64_t position);

 private:
  void enter_window(std::int64_t window);

  std::vector<Piece> pieces_;         // in the epoch's order
  std::vector<std::int64_t> starts_;  // position of each piece's first record, and the total
  bool shuffle_;
  std::int64_t window_chunks_;
  HashRng rng_;
  std::int64_t window_ = -1;           // the window in `records_`
  std::int64_t window_start_ = 0;      // its first position
  std::vector<std::int64_t> records_;  // its ids, permuted
};

}  // namespace echelon::inline data
