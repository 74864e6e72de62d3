// SPDX-License-Identifier: Apache-2.0
// The samples of one replica in one step, and the interface that provides them.
#pragma once

#include <cstdint>

namespace echelon::inline data {

// The BatchSource owns the memory, which is valid until its next call. N = n, T = length, U = target_length.
struct Batch {
  std::int64_t epoch = 0;
  std::int64_t step = 0;           // step within the epoch
  std::int64_t drawn = -1;         // number of a drawn batch (draw_plan.hpp)
  std::int64_t n = 0;              // samples: plan.batch(replica), or the global batch with data.as_replicas
  std::int64_t length = 0;         // T: length to which the sequences of this batch are padded; 0: images
  std::int64_t target_length = 0;  // U: length to which the target sequences are padded; 0: not pairs
  const void* samples = nullptr;   // (N, C, H, W) or (N, T, F) of the loader's dtype, or tokens (N, T), i32
  const void* labels = nullptr;    // classes (N), (N, T) or (N, places), tokens (N, T) of text or (N, U) of pairs, i32;
                                   // or real numbers (N, K) or (N, T, K) of the loader's dtype
  const void* weights =
      nullptr;  // 0, or the sample's weight (usually 1), per label, in the labels' shape and the loader's dtype
  const void* others = nullptr;           // (N), i32, classes of the samples that were mixed in; null: none are
  const void* other_weights = nullptr;    // (N), their weights; the sample's own label has the rest in `weights`
  const std::int32_t* lengths = nullptr;  // (N), lengths without padding; null if all sequences are equally long
  const std::uint8_t* begins = nullptr;   // (N), whether a series begins in the row; null if rows have no series
  const std::int32_t* target = nullptr;   // (N, U), only pairs: decoder input, the start token and labels[.., :-1]
  const std::int32_t* ids = nullptr;      // (N), the low 32 bits of each sample's id
  double weight = 0;                      // number of labels that count
  // The same number, as LabelWeights::counts divides it; null: Dataset::label_weights is empty.
  const double* label_counts = nullptr;
};

// Provides the batches of one replica in the order of its steps.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Returns the batch of this step, which must be later than all returned before; batches in between are skipped. Waits
  // until it is read, and throws the errors of reading (DataError, MemoryError). Called by one thread.
  virtual const Batch& at(std::int64_t epoch, std::int64_t step) = 0;
  // Replaces at() if batches are drawn (draw_plan.hpp): the next one, with its number in `drawn`; null: none is left.
  virtual const Batch* draw() { return nullptr; }
  virtual std::uint64_t bytes_read() const { return 0; }  // bytes read from files so far
  virtual std::uint64_t bytes_used() const { return 0; }  // stored bytes of the samples in the batches so far
};

}  // namespace echelon::inline data
