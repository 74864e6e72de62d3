// The order of one stream of records in one epoch: chunks permuted, then records inside a window of chunks.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hash_rng.hpp"

namespace echelon::inline data {

// Records that lie together in a file, by global id.
struct Piece {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

class SampleOrder {
 public:
  // `pieces` in file order. Memory: O(pieces) and one window.
  SampleOrder(std::vector<Piece> pieces, bool shuffle, std::int64_t window_chunks, HashRng rng);

  std::int64_t samples() const { return starts_.back(); }
  // Id at a position in [0, samples()). Cheap for positions that follow one another; not for two threads at once.
  std::int64_t at(std::int64_t position);

 private:
  void enter_window(std::int64_t window);

  std::vector<Piece> pieces_;         // in the epoch's order
  std::vector<std::int64_t> starts_;  // position of each piece's first record, and the end
  bool shuffle_;
  std::int64_t window_chunks_;
  HashRng rng_;
  std::int64_t window_ = -1;           // the one that is laid out below
  std::int64_t window_start_ = 0;      // its first position
  std::vector<std::int64_t> records_;  // its ids, permuted
};

}  // namespace echelon::inline data
