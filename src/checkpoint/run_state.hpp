// SPDX-License-Identifier: Apache-2.0
// The position and counters of a run, saved with the weights. Equal on every rank except for `at`.
//
// Replicas that step at their own pace have no common position. Their checkpoint, written at a meeting, has the
// position of the furthest replica, after which it is named, and what all of them have trained: the steps of each
// replica (`replica_steps`) if each has its own shard, or the samples that have not been trained (`open`) if batches
// are drawn or dealt anew (train/batch_draws.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/state.hpp"
#include "data/draw_plan.hpp"

namespace echelon::inline checkpoint {

struct Position {
  std::int64_t step = 0;           // updates done
  std::int64_t epoch = 0;          // epochs done
  std::int64_t step_in_epoch = 0;  // steps done in the current epoch
};

// The run's checkpoint with the best evaluation, by checkpoint.keep_best.
struct BestCheckpoint {
  std::int64_t metric = 0;  // a GoalMetric
  std::int64_t step = -1;   // -1: none
  double figure = 0;
};

// How much an attempt had recorded when a checkpoint was taken: its number, and the length of its metrics.jsonl.
struct RecordsEnd {
  std::int64_t attempt = 0;
  std::int64_t bytes = -1;  // -1: not known
};

struct RunState {
  std::int64_t step = 0;  // these three are the Position of the run
  std::int64_t epoch = 0;
  std::int64_t step_in_epoch = 0;
  std::int64_t epochs_over = -1;  // epochs done by the samples of all replicas together; -1: as `epoch`
  std::int64_t global_batch = 0;  // samples per step; must be the same in a resumed run
  std::int64_t replicas = 1;      // may differ on resume
  std::int64_t steps_per_epoch = 0;
  double epoch_loss = 0;  // sums over the current epoch, over all replicas
  double epoch_weight = 0;
  double first_loss = 0;  // loss of the run's first step; 0: not done yet
  BestCheckpoint best = {};
  RecordsEnd records = {};
  std::vector<std::int64_t> replica_steps = {};  // steps of each replica in its shard; empty: `step` for all
  std::vector<OpenSamples> open = {};            // in the form of DrawPlan; empty: everything from the position on
  Position at = {};                              // position of this rank's replica; not saved

  std::int64_t epochs() const { return epochs_over < 0 ? epoch : epochs_over; }
  Position position() const { return {.step = step, .epoch = epoch, .step_in_epoch = step_in_epoch}; }
  void move_to(const Position& position) {
    step = position.step, epoch = position.epoch, step_in_epoch = position.step_in_epoch;
  }
  void visit_state(StateVisitor& visitor);
};

// Reads it from a checkpoint whose files are good. Throws DataError if it cannot be opened.
RecordsEnd records_end_in(const std::string& checkpoint);

}  // namespace echelon::inline checkpoint
