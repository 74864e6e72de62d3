// SPDX-License-Identifier: Apache-2.0
// Steps whose sequences have similar lengths (data.buckets). Samples are put into buckets by length, in the epoch's
// order; a bucket that holds a global batch becomes the next step (as in TensorFlow's bucket_by_sequence_length).
// Reading stays nearly as sequential as the order, and all replicas have the same bucket in a step. Incomplete buckets
// follow at the end, shortest first, as `ragged` says. A pure function of its arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline data {

struct SampleSlot {
  std::int64_t id = 0;  // id of the sample in the data set
  bool counts = true;   // false: its labels have weight 0
};

// Returns the index of the first bucket with buckets[i] >= length, else the last one, where the sequence is truncated.
// `buckets`: greatest lengths, increasing.
int bucket_of(const std::vector<std::int64_t>& buckets, std::int64_t length);

class LengthBucketSteps {
 public:
  // `order`: every id of the epoch once. `lengths`: indexed by id.
  LengthBucketSteps(const std::vector<std::int64_t>& order, const std::vector<std::int32_t>& lengths,
                    const std::vector<std::int64_t>& buckets, std::int64_t global_batch, Ragged ragged);

  std::int64_t steps() const { return static_cast<std::int64_t>(steps_.size()); }
  int bucket(std::int64_t step) const { return steps_[static_cast<std::size_t>(step)].bucket; }
  // Returns the sample of row `row` in the global batch of a step. An incomplete step is filled with the first samples
  // of its bucket (wrap) or with samples of weight 0 (zero_weight), or it is left out (drop).
  SampleSlot at(std::int64_t step, std::int64_t row) const;

 private:
  struct Step {
    int bucket;
    std::int64_t first;  // index of its first member
  };
  std::vector<std::vector<std::int64_t>> members_;  // [bucket], in the epoch's order
  std::vector<Step> steps_;
  Ragged ragged_;
};

}  // namespace echelon::inline data
