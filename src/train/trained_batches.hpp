// SPDX-License-Identifier: Apache-2.0
// Which batches of one epoch a rank has trained, for the count of samples that were trained never, once and more often.
// The epoch is the one in which the attempt began; what earlier attempts have trained of it counts too.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/draw_plan.hpp"
#include "data/sample_plan.hpp"
#include "train/hooks/hook.hpp"

namespace echelon::inline train {

struct RunPlan;

class TrainedBatches {
 public:
  // `done`: batches of the epoch that this rank's replica has trained before.
  explicit TrainedBatches(std::int64_t epoch = 0, std::int64_t done = 0) : epoch_(epoch) {
    if (done > 0) runs_.emplace_back(0, done - 1);
  }
  // One of this rank's steps. A batch that has left no trace in the model does not count.
  void add(const StepRecord& record);
  std::int64_t epoch() const { return epoch_; }
  // Runs of StepRecord::batch, "0-99 120-131".
  std::string text() const;

 private:
  std::int64_t epoch_;
  std::vector<std::pair<std::int64_t, std::int64_t>> runs_;  // first and last
};

// The batches in a text of TrainedBatches.
std::vector<std::int64_t> batches_in(const std::string& text);

// Counts by the texts of all replicas. `draws`: null if each replica has its shard. O(samples).
SamplePlan::Coverage trained_coverage(const RunPlan& plan, const DrawPlan* draws, std::int64_t epoch,
                                      const std::vector<std::string>& by_replica);

}  // namespace echelon::inline train
