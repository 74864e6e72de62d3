// SPDX-License-Identifier: Apache-2.0
// A plan's cache: the orders of the two most recently requested epochs, because most requests repeat the last
// epoch.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "data/bucket_steps.hpp"
#include "data/sample_order.hpp"
#include "data/series_rows.hpp"

namespace echelon::inline data {

// Holds a value for each of the two most recently requested epochs.
template <class Thing>
class LastTwo {
 public:
  // Returns the value of `epoch`, calling make() if it is not cached. Valid until two other epochs have been requested.
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
  std::mutex mutex;  // must be held while using anything below
  LastTwo<LengthBucketSteps> buckets;
  LastTwo<SeriesRows> series;

  // A stream is a replica for `file` and `replicated`, and 0 for `record`.
  LastTwo<SampleOrder>& of_stream(int stream) {
    if (streams.size() <= static_cast<std::size_t>(stream)) streams.resize(static_cast<std::size_t>(stream) + 1);
    return streams[static_cast<std::size_t>(stream)];
  }

 private:
  std::vector<LastTwo<SampleOrder>> streams;
};

}  // namespace echelon::inline data
