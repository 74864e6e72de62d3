// What a loader hands out: one replica's part of a step.
#pragma once

#include <cstdint>

namespace echelon {

// Memory belongs to the loader and stays until the next call of next(). T and U are `length` and `target_length`.
struct Batch {
  std::int64_t epoch = 0;
  std::int64_t step = 0;           // inside the epoch
  std::int64_t n = 0;              // plan.batch(replica), or the global batch
  std::int64_t length = 0;         // of this batch's sequences, padded; 0: none
  std::int64_t target_length = 0;  // likewise of a decoder's
  const void* samples = nullptr;   // (n, C, H, W) or (n, T, F) of the loader's dtype, (n, T) tokens, i32
  const void* labels = nullptr;    // (n), or one a token: (n, T) of text, (n, U) of pairs, i32; numbers (n, K) of
                                   // the loader's dtype
  const void* weights = nullptr;   // as labels, the loader's dtype, 0 or 1
  const std::int32_t* lengths = nullptr;  // (n), where sequences are of unlike length
  const std::int32_t* target = nullptr;   // (n, U), of pairs: the start token and what was said before
  const std::int32_t* ids = nullptr;      // (n), each sample's number in the data set, its low 32 bits
  double weight = 0;                      // sum of weights
};

}  // namespace echelon
