// SPDX-License-Identifier: Apache-2.0
#include "data/bucket_steps.hpp"

#include <algorithm>

namespace echelon::inline data {

int bucket_of(const std::vector<std::int64_t>& buckets, std::int64_t length) {
  const auto fits = std::lower_bound(buckets.begin(), buckets.end(), length);
  return static_cast<int>(std::min(fits, buckets.end() - 1) - buckets.begin());
}

LengthBucketSteps::LengthBucketSteps(const std::vector<std::int64_t>& order, const std::vector<std::int32_t>& lengths,
                                     const std::vector<std::int64_t>& buckets, std::int64_t global_batch, Ragged ragged)
    : members_(buckets.size()), ragged_(ragged) {
  for (const std::int64_t id : order) {
    const int bucket = bucket_of(buckets, lengths[static_cast<std::size_t>(id)]);
    auto& members = members_[static_cast<std::size_t>(bucket)];
    members.push_back(id);
    const auto held = static_cast<std::int64_t>(members.size());
    if (held % global_batch == 0) steps_.push_back({bucket, held - global_batch});
  }
  if (ragged == Ragged::drop) return;
  for (std::size_t b = 0; b < members_.size(); ++b) {
    const auto held = static_cast<std::int64_t>(members_[b].size());
    if (held % global_batch != 0) steps_.push_back({static_cast<int>(b), held / global_batch * global_batch});
  }
}

SampleSlot LengthBucketSteps::at(std::int64_t step, std::int64_t row) const {
  const Step& of = steps_[static_cast<std::size_t>(step)];
  const auto& members = members_[static_cast<std::size_t>(of.bucket)];
  const auto position = static_cast<std::size_t>(of.first + row);
  return {.id = members[position % members.size()],
          .counts = position < members.size() || ragged_ != Ragged::zero_weight};
}

}  // namespace echelon::inline data
