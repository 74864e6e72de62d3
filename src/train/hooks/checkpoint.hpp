// Saves the run's state, at meetings: every so many steps, minutes or epochs, when a signal asks for it, before an
// early stop, and at the end.
#pragma once

#include <string>

#include "checkpoint/checkpoint.hpp"
#include "config/schema.hpp"
#include "device/arenas.hpp"
#include "exchange/strategy.hpp"
#include "job/phase.hpp"
#include "job/run_folder.hpp"
#include "job/status_board.hpp"
#include "train/hooks/hook.hpp"

namespace echelon::inline train {

class CheckpointHook final : public Hook {
 public:
  // `writes`: rank 0 of the replicas. `gather`: state that lies on several ranks, called by all of them. `board` is
  // told of each new checkpoint. `training_data`: as save_checkpoint takes it. `settle_records`: called by the writing
  // rank before it writes one, may be empty.
  CheckpointHook(const CheckpointConfig& config, const RunFolder& folder, bool writes, VisitAll visit,
                 std::function<WholeTensors()> gather, Arenas& arenas, Strategy& strategy, PhaseBoard& phase,
                 StatusBoard& board, std::string training_data, std::function<void()> settle_records);

  void run_begin(std::int64_t first_step) override { saved_step_ = seen_step_ = first_step; }
  void step_end(const StepRecord& record) override;
  void epoch_end(EpochRecord& record) override;
  double StepTimes::*time_part() const override { return &StepTimes::checkpoint_s; }

 private:
  void save(std::int64_t step);

  const CheckpointConfig& config_;
  const RunFolder& folder_;
  bool writes_;
  VisitAll visit_;
  std::function<WholeTensors()> gather_;
  Arenas& arenas_;
  Strategy& strategy_;
  PhaseBoard& phase_;
  StatusBoard& board_;
  std::string training_data_;
  std::function<void()> settle_records_;
  bool at_epoch_end_ = false;  // save there: the epoch's figures come first
  std::int64_t saved_step_ = -1;
  std::int64_t seen_step_ = 0;  // of the last meeting
};

}  // namespace echelon::inline train
