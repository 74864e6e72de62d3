// SPDX-License-Identifier: Apache-2.0
// Samples that another number of replicas has left of its shards, dealt anew: replica n mod k gets number n of the
// DrawPlan, whatever the pace of the others. Sends no message.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "train/batch_draws.hpp"

namespace echelon::inline train {

class DealtDraws final : public BatchDraws {
 public:
  // The arguments are those of BatchDraws. `replica` is one of records.replicas().
  DealtDraws(int replica, const SamplePlan& records, const std::vector<OpenSamples>& open, std::int64_t steps_per_epoch,
             std::int64_t total_steps)
      : BatchDraws(records, open, steps_per_epoch, total_steps), next_(replica) {}

  std::optional<std::int64_t> next() override {
    if (stopped_ || next_ >= end()) return {};
    const std::int64_t number = next_;
    next_ += plan().replicas();
    return number;
  }
  void stop() override { stopped_ = true; }
  std::vector<OpenSamples> gather(Group& workers) override;

 private:
  std::int64_t next_;  // used only by the loader's thread
  std::atomic<bool> stopped_ = false;
};

}  // namespace echelon::inline train
