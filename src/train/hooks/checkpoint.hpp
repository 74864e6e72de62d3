// SPDX-License-Identifier: Apache-2.0
// Saves the run's state at meetings: every few steps, minutes or epochs, when a signal asks for it, after an
// evaluation that is the best so far (checkpoint.keep_best), before an early stop, and at the end.
//
// With checkpoint.asynchronous training goes on once the state is gathered and copied, and a thread of rank 0, and of
// each rank that holds a part of the model, writes it. A write under way is finished before the next one begins, before
// the attempt ends, early or not, and before an error that rank 0 knows of ends it; where the process is killed, or
// another rank ends the world, it is dropped. A write that fails ends the run at the next step.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "checkpoint/checkpoint_writer.hpp"
#include "checkpoint/run_state.hpp"
#include "config/goal.hpp"
#include "config/schema.hpp"
#include "device/arenas.hpp"
#include "exchange/strategy.hpp"
#include "job/phase.hpp"
#include "job/run_folder.hpp"
#include "job/status_board.hpp"
#include "report/figures.hpp"
#include "train/hooks/hook.hpp"

namespace echelon::inline train {

struct CheckpointParts {
  VisitAll visit;
  std::function<GatheredTensors()> gather;  // rows that lie on several ranks, called by all of them
  Arenas& arenas;
  Strategy& strategy;
  RunState& state;
  PhaseBoard& phase;
  StatusBoard& board;
};

class CheckpointHook final : public Hook {
 public:
  // Both are called on the rank that leads the writers. Settle: before the state is copied; returns what is recorded
  // then. Tell: for each checkpoint once it counts.
  using Settle = std::function<RecordsEnd()>;
  using Tell = std::function<void(const CheckpointFigures&)>;

  // `writer`: null but on rank 0, and on ranks that write a part of the model.
  CheckpointHook(const CheckpointConfig& config, const RunFolder& folder, CheckpointParts parts,
                 std::unique_ptr<CheckpointWriter> writer, Settle settle_records, Tell tell);

  void run_begin(std::int64_t first_step) override;
  void step_end(const StepRecord& record) override;
  void epoch_end(EpochRecord& record) override;
  void waiting() override { take_up(); }
  double StepTimes::*time_part() const override { return &StepTimes::checkpoint_s; }

  // Figures of an evaluation of all replicas at this meeting, the same on all ranks.
  void take(const TestFigures& figures);
  // Finishes the write under way, as far as it can be; its error is logged.
  void settle();
  // Sums over the checkpoints of this attempt, and the best of the run.
  void add_to(RunFigures& figures) const;

 private:
  bool leads() const { return writer_ && writer_->leads(); }
  void save(std::int64_t step);
  void name_best();
  void take_up();
  void finish();

  const CheckpointConfig& config_;
  const RunFolder& folder_;
  CheckpointParts parts_;
  std::unique_ptr<CheckpointWriter> writer_;
  Settle settle_records_;
  Tell tell_;
  bool at_epoch_end_ = false;  // save there: the epoch's figures come first
  bool stopping_ = false;
  bool is_best_ = false;  // by the evaluation at this meeting
  std::int64_t saved_step_ = -1;
  std::int64_t seen_step_ = 0;  // of the last meeting
  double written_ = 0, blocked_s_ = 0, write_s_ = 0;
};

}  // namespace echelon::inline train
