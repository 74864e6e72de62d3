// SPDX-License-Identifier: Apache-2.0
// data.balance = "queue": the queue of an attempt's batches on one worker; rank 0 of the workers keeps it
// (control/draws.hpp). What a number stands for is data/draw_plan.hpp.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/engine.hpp"
#include "train/batch_draws.hpp"
#include "train/control/draws.hpp"

namespace echelon::inline train {

class DrawQueue final : public BatchDraws, private ProtocolHost {
 public:
  static constexpr int kChannels = 2;

  // The arguments are those of BatchDraws. Uses `channel` and the next one of `workers`, whose ranks are the workers by
  // replica, and which outlives this.
  DrawQueue(Engine& workers, int channel, const SamplePlan& records, const std::vector<OpenSamples>& open,
            std::int64_t steps_per_epoch, std::int64_t total_steps);
  ~DrawQueue() override;

  std::vector<OpenSamples> gather(Group& workers) override;
  // Called by the loader's thread.
  std::optional<std::int64_t> next() override;
  void stop() override;
  void close() override;
  void trained() override;

 private:
  void on_notified(Token token, double now_s) override;
  void failed(std::exception_ptr error) override;

  DrawMachine machine_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  bool waiting_ = false, stopped_ = false, over_ = false;
  std::int64_t drawn_ = DrawMachine::kNone;
  std::exception_ptr error_;
  std::unique_ptr<Attachment> attachment_;  // ends first
};

}  // namespace echelon::inline train
