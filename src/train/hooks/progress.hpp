// SPDX-License-Identifier: Apache-2.0
// Shows the progress of a run: on a terminal by a bar that is drawn over itself, elsewhere by a heartbeat line every
// few seconds; and by a line per epoch. Rank 0.
#pragma once

#include <cstdint>
#include <string>

#include "config/schema.hpp"
#include "train/hooks/hook.hpp"

namespace echelon::inline train {

class ProgressHook final : public Hook {
 public:
  // `own_pace`: replicas take steps of their own, and rates are those of rank 0.
  ProgressHook(const RunConfig& config, std::int64_t total_steps, std::int64_t total_epochs, bool own_pace);

  void run_begin(std::int64_t first_step) override;
  void epoch_end(EpochRecord& record) override;
  void step_recorded(const StepRecord& record) override;
  void run_end(bool finished) override;

 private:
  std::string line(const StepRecord& record) const;
  std::string epoch_text(std::int64_t epoch) const;  // counted from 1; "epoch 2/3", "epoch 2" where steps end the run
  std::string within_text(std::int64_t epoch) const;
  void draw(const StepRecord& record);
  void wipe();

  double heartbeat_s_;
  std::int64_t total_steps_;
  std::int64_t total_epochs_;
  bool own_pace_;
  bool bar_ = false;
  bool lines_ = false;
  bool drawn_ = false;
  double next_s_ = 0;          // of the next line or drawing
  double window_start_s_ = 0;  // samples/s are of the time since the last one
  double window_samples_ = 0, window_tokens_ = 0;
  std::int64_t window_steps_ = 0;
  std::string epoch_line_;
};

// " nats a token (perplexity 4.95)", behind a loss.
std::string perplexity_text(double nats);

}  // namespace echelon::inline train
