// The orders of the two epochs that a plan was asked for last: computed from its request, kept because the next
// question is mostly of the same epoch.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "data/bucket_steps.hpp"
#include "data/sample_order.hpp"

namespace echelon::inline data {

// What belongs to an epoch, of the last two.
template <class Thing>
class LastTwo {
 public:
  template <class Make>
  Thing& get(std::int64_t epoch, Make&& make) {
    if (newest_ && newest_epoch_ == epoch) return *newest_;
    std::swap(newest_, older_);
    std::swap(newest_epoch_, older_epoch_);
    if (!newest_ || newest_epoch_ != epoch) {
      newest_ = std::make_unique<Thing>(make());
      newest_epoch_ = epoch;
    }
    return *newest_;
  }

 private:
  std::unique_ptr<Thing> newest_, older_;
  std::int64_t newest_epoch_ = -1, older_epoch_ = -1;
};

struct PlanOrders {
  std::mutex mutex;  // of all below
  LastTwo<LengthBucketSteps> buckets;

  LastTwo<SampleOrder>& of_stream(int stream) {
    if (streams.size() <= static_cast<std::size_t>(stream)) streams.resize(static_cast<std::size_t>(stream) + 1);
    return streams[static_cast<std::size_t>(stream)];
  }

 private:
  std::vector<LastTwo<SampleOrder>> streams;
};

}  // namespace echelon::inline data
