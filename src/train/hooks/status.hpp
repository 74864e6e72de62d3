// SPDX-License-Identifier: Apache-2.0
// Keeps the status board at the number of updates done. Every rank.
#pragma once

#include "job/status_board.hpp"
#include "train/hooks/hook.hpp"

namespace echelon::inline train {

class StatusHook final : public Hook {
 public:
  explicit StatusHook(StatusBoard& board) : board_(board) {}
  void run_begin(std::int64_t first_step) override { board_.at_step(first_step); }
  void step_recorded(const StepRecord& record) override { board_.at_step(record.step); }

 private:
  StatusBoard& board_;
};

}  // namespace echelon::inline train
