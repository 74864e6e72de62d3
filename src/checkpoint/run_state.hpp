// The position and counters of a run, saved with the weights; equal on every rank but for `at`.
//
// Where replicas step at their own pace they have no position in common. A checkpoint, written at a meeting, then has
// the position of the replica that is furthest, by which it is named, and what all of them have trained: steps by
// replica (`replica_steps`) where each has its shard, or the samples that nobody has trained (`open`) where batches are
// drawn or dealt anew (train/batch_draws.hpp).
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
  std::int64_t step_in_epoch = 0;  // steps done of the epoch under way
};

// The checkpoint of the run whose evaluation was the best, by checkpoint.keep_best.
struct BestCheckpoint {
  std::int64_t metric = 0;  // GoalMetric
  std::int64_t step = -1;   // -1: none
  double figure = 0;
};

// What an attempt had recorded when a checkpoint was taken: its number, and the length of its metrics.jsonl.
struct RecordsEnd {
  std::int64_t attempt = 0;
  std::int64_t bytes = -1;  // -1: not known
};

struct RunState {
  std::int64_t step = 0;  // Position of the run
  std::int64_t epoch = 0;
  std::int64_t step_in_epoch = 0;
  std::int64_t epochs_over = -1;  // by the samples of all replicas together; -1: as `epoch`
  std::int64_t global_batch = 0;  // samples a step: a resumed run must have the same
  std::int64_t replicas = 1;      // may differ on resume
  std::int64_t steps_per_epoch = 0;
  double epoch_loss = 0;  // sums over the epoch under way, over all replicas
  double epoch_weight = 0;
  double first_loss = 0;  // of the first step of the run; 0: not done yet
  BestCheckpoint best = {};
  RecordsEnd records = {};
  std::vector<std::int64_t> replica_steps = {};  // done by each replica of its shard; empty: `step` by all
  std::vector<OpenSamples> open = {};            // as DrawPlan takes it; empty: all from the position on
  Position at = {};                              // of this rank's replica; not saved

  std::int64_t epochs() const { return epochs_over < 0 ? epoch : epochs_over; }
  Position position() const { return {.step = step, .epoch = epoch, .step_in_epoch = step_in_epoch}; }
  void move_to(const Position& position) {
    step = position.step, epoch = position.epoch, step_in_epoch = position.step_in_epoch;
  }
  void visit_state(StateVisitor& visitor);
};

// Of a checkpoint whose files are good; DataError where it cannot be opened.
RecordsEnd records_end_in(const std::string& checkpoint);

}  // namespace echelon::inline checkpoint
