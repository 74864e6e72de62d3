// One replica's part of a step, and what hands it out.
#pragma once

#include <cstdint>

namespace echelon::inline data {

// Memory belongs to the source and stays until the next is asked for. T and U are `length` and `target_length`.
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
  const std::int32_t* target = nullptr;   // (n, U), of pairs: the start token and the tokens before
  const std::int32_t* ids = nullptr;      // (n), each sample's number in the data set, its low 32 bits
  double weight = 0;                      // sum of weights
};

// The batches of one replica, in the order of its steps.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // The batch of this step, which comes after all that were handed out before; those between are left out. Waits for
  // it.
  virtual const Batch& at(std::int64_t epoch, std::int64_t step) = 0;
  virtual std::uint64_t bytes_read() const { return 0; }  // from files
  virtual std::uint64_t bytes_used() const { return 0; }  // stored bytes of the samples in the batches so far
};

}  // namespace echelon::inline data
