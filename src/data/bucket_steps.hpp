// Steps whose sequences have similar lengths (data.buckets). The samples of an epoch are put into the bucket of their
// length in the epoch's order; whenever a bucket holds a global batch, that batch is the next step (as in TensorFlow's
// bucket_by_sequence_length). Reading stays about as sequential as the order, and all replicas have the same bucket in
// a step. At the end incomplete buckets follow, shortest first, as `ragged` says. A pure function of its arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline data {

struct SampleSlot {
  std::int64_t id = 0;  // of the sample in the data set
  bool counts = true;   // false: its labels have weight 0
};

// The index of the first bucket with buckets[i] >= length, else the last one, where the sequence is truncated.
// `buckets`: greatest lengths, increasing.
int bucket_of(const std::vector<std::int64_t>& buckets, std::int64_t length);

class LengthBucketSteps {
 public:
  // `order`: every id of the epoch once. `lengths` by id.
  LengthBucketSteps(const std::vector<std::int64_t>& order, const std::vector<std::int32_t>& lengths,
                    const std::vector<std::int64_t>& buckets, std::int64_t global_batch, Ragged ragged);

  std::int64_t steps() const { return static_cast<std::int64_t>(steps_.size()); }
  int bucket(std::int64_t step) const { return steps_[static_cast<std::size_t>(step)].bucket; }
  // The sample of row `row` of the global batch of a step. An incomplete step is filled by `ragged`: with the first
  // samples of its bucket (wrap), with samples of weight 0 (zero_weight), or there is none (drop).
  SampleSlot at(std::int64_t step, std::int64_t row) const;

 private:
  struct Step {
    int bucket;
    std::int64_t first;  // of its members
  };
  std::vector<std::vector<std::int64_t>> members_;  // by bucket, in the epoch's order
  std::vector<Step> steps_;
  Ragged ragged_;
};

}  // namespace echelon::inline data
