// A cache of a plan: the orders of the two epochs that were requested last, because the next request is mostly of the
// same epoch.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "data/bucket_steps.hpp"
#include "data/sample_order.hpp"

namespace echelon::inline data {

// A value for each of the two epochs that were requested last.
template <class Thing>
class LastTwo {
 public:
  // The value of `epoch`, made by make() where it is not cached. Valid until two other epochs were requested.
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
  std::mutex mutex;  // held by the user of anything below
  LastTwo<LengthBucketSteps> buckets;

  // A stream is the replica for `file` and `replicated`, 0 for `record`.
  LastTwo<SampleOrder>& of_stream(int stream) {
    if (streams.size() <= static_cast<std::size_t>(stream)) streams.resize(static_cast<std::size_t>(stream) + 1);
    return streams[static_cast<std::size_t>(stream)];
  }

 private:
  std::vector<LastTwo<SampleOrder>> streams;
};

}  // namespace echelon::inline data
