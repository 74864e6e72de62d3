// SPDX-License-Identifier: Apache-2.0
// Observers of the loop: evaluation, checkpoints, agreement, metrics, progress. The loop treats all of them alike.
//
// Once a step, in this order and for each hook in the order they were given:
//   step_end       the update is done and the run's state counts it; hooks may save, compare, stop by throwing. The
//                  times are those up to now, without those of hooks
//   epoch_end      only if an epoch (or the run) ends with this step; evaluation fills the record for later hooks
//   step_recorded  the step's times are final, including those of the hooks above
// Every rank calls the same hooks at the same meetings (exchange/progress.hpp), and a hook may use the group only
// there; an epoch ends in a meeting.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/allocations.hpp"
#include "config/goal.hpp"
#include "exchange/strategy.hpp"
#include "model/program.hpp"
#include "report/figures.hpp"
#include "train/class_counts.hpp"
#include "train/control/words.hpp"
#include "train/value_counter.hpp"

namespace echelon::inline train {

struct StepRecord {
  // Updates done, this one included. Of this rank; at a meeting, of the rank that has done most, so that all agree.
  std::int64_t step = 0;
  std::int64_t own_step = 0;  // the same of this rank, at meetings too
  bool meets = true;          // all ranks stand together after this step
  std::uint32_t call =
      0;                // why rank 0 called this meeting (MeetingReason); 0 where ranks meet by the strategy's period
  bool trained = true;  // false: this rank had done all its steps, and attends a meeting
  std::int64_t epoch = 0;  // epochs done before this step
  double learning_rate = 0;
  // Mean over the labels since the last meeting, over all replicas; between meetings over the step's and this rank's;
  // NaN where the device computes nothing, or nobody has computed anything since.
  double loss = 0;
  LossSums own;        // of this rank's samples of the step
  double samples = 0;  // of the step over all replicas; of this one where each counts steps of its own
  double tokens = 0;   // the same in tokens, if each token has a label; else 0
  // Those of this rank's replica that entered the model: 0 if its gradient came too late or was not finite.
  double entered_samples = 0, entered_tokens = 0;
  std::int64_t batch =
      0;  // that this rank trained: the step of the epoch, or where batches are drawn, the draw's number
  StepTimes times;
  AllocationCount allocated;  // by the compute thread, hooks left out
  StepOutcome outcome;
  // If the gradient of this rank came too late: the steps after this one that it leaves out, and its samples of all of
  // them, which enter no update.
  std::int64_t steps_left_out = 0, dropped_samples = 0;
  double drift = -1;            // at a meeting: largest StepOutcome::drift of a replica; -1: none
  double arrival_skew_s = 0;    // of the previous step: largest minus smallest compute time of a rank
  double skew_wait_s = 0;       // the same step: largest compute time minus this rank's own
  std::vector<RankStep> ranks;  // of the step before, by worker; on rank 0, and not of every step (control/tree.hpp)
  bool checkpoint_requested = false;  // by a signal or the clock; all ranks agree
  bool stopping = false;              // the attempt ends here, before its time; all ranks agree
  bool ends_epoch = false;            // epoch_end follows
};

struct EpochRecord {
  std::int64_t epoch = 0;  // epochs done
  std::int64_t step = 0;
  double train_loss = std::numeric_limits<double>::quiet_NaN();  // mean over the epoch's samples; NaN: not known
  double test_loss = -1;                                         // -1: not evaluated
  double test_accuracy = -1;  // -1: not evaluated, or the loss has no notion of correct predictions
  double train_eval_loss = -1, train_accuracy = -1;  // the same for evaluate.train_fraction
  ClassCounts classes = {};  // counted by the newest evaluation, if evaluate.metrics asks for figures of classes
  ValueFigures values = {};  // of outputs that are numbers, if evaluate.metrics asks for them
  bool per_token = false;    // losses and accuracy are means over tokens
  double seconds = 0;
  bool last = false;    // the run is finished
  bool within = false;  // in the middle of the epoch after those
  bool tested() const { return test_loss >= 0; }
  TestFigures test_figures() const {
    const ClassFigures of_classes = classes.any() ? classes.figures() : ClassFigures{};
    return {test_loss, test_accuracy, of_classes.mean_iou, of_classes.macro_f1, of_classes.auc, values.mae, values.r2};
  }
};

class Hook {
 public:
  virtual ~Hook() = default;
  virtual void run_begin(std::int64_t first_step) { (void)first_step; }
  virtual void step_end(const StepRecord& record) { (void)record; }
  virtual void epoch_end(EpochRecord& record) { (void)record; }
  virtual void step_recorded(const StepRecord& record) { (void)record; }
  // Many times while this rank stands at a meeting that was not called yet; no group may be used.
  virtual void waiting() {}
  // The part of the step's time that its work counts as.
  virtual double StepTimes::*time_part() const { return &StepTimes::hooks_s; }
  // Asked at meetings, after step_end and after epoch_end: the run has nothing left to do, though steps remain. The
  // same on all ranks. After step_end an epoch_end with `last` follows.
  virtual bool ends_run() const { return false; }
  // Called once per step of this rank if ranks do not meet in each, with its own losses, before they are sent to the
  // others. Returns their mean if all ranks are to end because of it; 0: they are not.
  virtual double diverges(const LossSums& own, std::int64_t step) { return (void)own, (void)step, 0.0; }
  // Asked once a step, on any rank: all are to save and end, as if USR1 came.
  virtual bool asks_to_requeue() const { return false; }
  virtual void run_end(bool finished) { (void)finished; }
};

}  // namespace echelon::inline train
