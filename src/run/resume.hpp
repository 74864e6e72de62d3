// SPDX-License-Identifier: Apache-2.0
// Decides whether an attempt starts, resumes, or has nothing left to do: rank 0 decides by the files, and all ranks get
// its decision.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "config/schema.hpp"
#include "job/run_folder.hpp"
#include "job/run_lock.hpp"
#include "train/run_plan.hpp"

namespace echelon::inline run {

struct Decision {
  bool finished = false;     // the run has been done already; no attempt was made
  bool goal_missed = false;  // finished: without reaching goal.target
  RunFolder folder;          // finished: of the attempt that finished it
  std::string checkpoint;    // path of the file to resume from; "" : from the first step
  std::int64_t step = 0;     // updates done at the start, or by the finished run
  int ranks = 0;             // finished: its number of ranks; 0 if it is unknown

  // other_run: the checkpoint is another run's (run.resume_from). The others say what of it is taken up
  // (other_run.hpp); everything if it is the run's own.
  bool other_run = false, weights_only = false, optimiser = true, residuals = true;
  std::vector<std::string> damaged;  // texts: own checkpoints that are newer than the one to resume; only on rank 0
  std::string weights;  // path of the file that the first step's weights are taken from (model.weights); "": drawn
  std::string told;     // text about the start for banner and check; only on rank 0

  bool first_step() const { return checkpoint.empty(); }
};

// Returns how a run of this plan would start; writes nothing, for `echelon check` and before the lock is taken. The
// run's own checkpoints precede run.resume_from, which precedes the first step; own ones are judged only by manifest
// and size. Throws as decide_start and take_up (other_run.hpp) do.
Decision foresee_start(const Config& config, const RunPlan& plan);

// Takes the lock of the run (rank 0) and creates the folder of the attempt, unless the run is finished. Damaged
// checkpoints newer than the one to resume are set aside, rows of metrics beyond it removed. Collective, blocking:
// verifying reads every byte of the checkpoint twice, on rank 0. Errors are CommonErrors on all ranks: EnvironmentError
// if another process holds the run, the folder cannot be written, or run.restart = "require" finds no good checkpoint;
// DataError if all of the run's own checkpoints are damaged, which then stay where they are. Refusals of take_up come
// before a folder is created.
Decision decide_start(const Config& config, const RunPlan& plan, Group& group, RunLock& lock);

}  // namespace echelon::inline run
