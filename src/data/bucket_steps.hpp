// Steps of sequences of like length. The epoch's order is gone through once; each sequence waits in its bucket, and
// whenever a bucket holds a whole global batch that batch is the next step (as in tensorflow's
// bucket_by_sequence_length). So reading stays as sequential as the order, and all replicas share a bucket in a step.
// At the end the rests follow, shortest bucket first. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline data {

struct SampleSlot {
  std::int64_t id = 0;  // global
  bool counts = true;   // false: weight 0
};

// The bucket of a length: the first that it fits into; those beyond the last are cut and go there.
int bucket_of(const std::vector<std::int64_t>& buckets, std::int64_t length);

class LengthBucketSteps {
 public:
  // `order`: every id of the epoch once.
  LengthBucketSteps(const std::vector<std::int64_t>& order, const std::vector<std::int32_t>& lengths,
                    const std::vector<std::int64_t>& buckets, std::int64_t global_batch, Ragged ragged);

  std::int64_t steps() const { return static_cast<std::int64_t>(steps_.size()); }
  int bucket(std::int64_t step) const { return steps_[static_cast<std::size_t>(step)].bucket; }
  // Row `row` of the global batch of a step. A ragged end of `wrap` repeats the bucket's first samples of the epoch.
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
