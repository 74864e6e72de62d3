// What replicas of another number have left of their shards, dealt anew: number n of the DrawPlan is that of replica
// n mod k, whatever the pace of the others. No messages.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "train/batch_draws.hpp"

namespace echelon::inline train {

class DealtDraws final : public BatchDraws {
 public:
  // As BatchDraws. Of one replica of records.replicas().
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
  std::int64_t next_;  // the loader's thread alone
  std::atomic<bool> stopped_ = false;
};

}  // namespace echelon::inline train
