// SPDX-License-Identifier: Apache-2.0
// Writes records into the rows of a batch: normalises values, pads with zeros, augments images.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "data/augment.hpp"
#include "data/batch.hpp"
#include "data/chunk.hpp"
#include "data/dataset.hpp"
#include "data/mix.hpp"
#include "data/normalise.hpp"
#include "data/sample_plan.hpp"

namespace echelon::inline data {

// Memory aligned to a cache line; large memory is of huge pages, where the system has them.
class Aligned {
 public:
  explicit Aligned(std::size_t bytes);
  std::uint8_t* get() const { return static_cast<std::uint8_t*>(data_.get()); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  std::unique_ptr<void, Free> data_;
};

// Memory for a batch of up to n rows of any bucket; `batch` points into it.
struct BatchMemory {
  BatchMemory(const Dataset& dataset, std::int64_t n, DType dtype);
  Aligned samples, labels, weights, lengths, begins, target, ids;
  Aligned others, other_weights;  // of one row without mixed samples
  struct RowWeights {
    std::int64_t counting = -1;
    float weight = 0;
    friend bool operator==(const RowWeights&, const RowWeights&) = default;
  };
  std::vector<RowWeights> weighed;  // what the weights of each row were set to by put_weights()
  std::vector<double> label_counts;
  Batch batch;
};

class Collator {
 public:
  Collator(const Dataset& dataset, DType dtype, const Augmentation& augmentation);

  // Begins a batch of n rows. `bucket`: length to which its sequences are padded and truncated; 0: the set's.
  void begin(BatchMemory& memory, std::int64_t epoch, std::int64_t step, std::int64_t n, std::int64_t bucket) const;
  // Writes a record into a row, once for every row of [0, n), except the values of samples of one shape, which
  // draw() writes. Labels of a slot that does not count get weight 0.
  void put(BatchMemory& memory, std::int64_t row, const Record& record, const SampleSlot& slot) const;
  // Where the stored sample of a row may be read, before draw() normalises it there; null: nowhere.
  std::uint8_t* place_of(BatchMemory& memory, std::int64_t row) const;
  // Whether samples have one shape. Then each row takes put(), then draw().
  bool draws() const { return dataset_.kind == DataKind::samples; }
  // Not for several threads at once with one Collator. DataError with file and record if an image is damaged.
  void draw(BatchMemory& memory, std::int64_t row, const Record& record, const SampleSlot& slot);
  // The bytes of the stored sample.
  std::size_t stored_bytes(const Record& record) const;
  // Whether rows are mixed: each takes put() and draw(), then mix_labels() and mix().
  bool mixes() const { return mixes_; }
  const SampleMixer& mixer() const { return mixer_; }
  // Mix the record of sample `other` into a row that holds sample `slot`.
  void mix_labels(BatchMemory& memory, std::int64_t row, const SampleSlot& slot, const Record& record) const;
  void mix(BatchMemory& memory, std::int64_t row, const SampleSlot& slot, const Record& record, std::int64_t other);

 private:
  void put_sample(const Record& record, std::int64_t epoch, std::int64_t id, void* dst);
  void put_whole(const Record& record, std::int64_t epoch, std::int64_t id, void* dst);
  void put_steps(BatchMemory& memory, std::int64_t row, const Record& record) const;
  void put_target(BatchMemory& memory, std::int64_t row, const Record& record) const;
  // Labels of a row, and how many of them the record has; the others are padding.
  std::int64_t label_room(const BatchMemory& memory) const;
  std::int64_t labels_of(const BatchMemory& memory, const Record& record) const;
  void put_classes(BatchMemory& memory, std::int64_t row, const Record& record) const;
  void weigh_labels(BatchMemory& memory, std::int64_t row, const Record& record, bool counts) const;
  void put_numbers(BatchMemory& memory, std::int64_t row, const Record& record) const;
  void put_weights(BatchMemory& memory, std::int64_t row, std::int64_t counting, float weight) const;

  Dataset dataset_;
  DType dtype_;
  Normaliser normalise_;
  PixelScale pixels_;
  Augmenter augment_;
  SampleMixer mixer_;
  bool mixes_;
  std::vector<std::uint8_t> still_;  // an image before augmentation
  std::vector<std::uint8_t> whole_;  // an image that is cut
  std::vector<std::uint8_t> other_;  // an image that is mixed in
  std::int32_t start_ = 0, end_ = 0;
};

}  // namespace echelon::inline data
