// Whether an attempt starts, resumes, or has nothing left to do: rank 0 looks, all ranks are told.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/run_state.hpp"
#include "comm/group.hpp"
#include "config/schema.hpp"
#include "job/run_folder.hpp"
#include "job/run_lock.hpp"
#include "train/run_plan.hpp"

namespace echelon::inline run {

struct Decision {
  bool finished = false;   // the run has been done already; no attempt was made
  RunFolder folder;        // finished: of the attempt that did it
  std::string checkpoint;  // path of the file to resume from; "" : from the first step
  std::int64_t step = 0;   // to go on from, or of the finished run
  int ranks = 0;           // finished: on how many; 0 where it is not known

  // Of a checkpoint that is another run's (run.resume_from): what is taken up (other_run.hpp); of an own one all.
  bool other_run = false, weights_only = false, optimiser = true, residuals = true;
  std::string told;  // of the start, for people; known to rank 0

  bool first_step() const { return checkpoint.empty(); }
};

// How a run of this plan would start; reads alone. Its own checkpoints come before run.resume_from, which comes before
// the first step; own ones are looked at by a glance. Throws what decide_start and take_up (other_run.hpp) throw.
Decision foresee_start(const Config& config, const RunPlan& plan);

// Takes the run's lock (rank 0) and makes the attempt's folder, unless the run is finished. Damaged checkpoints that
// are newer than the one to resume are set aside. Errors are common to all ranks: EnvironmentError where another
// process holds the run, the folder cannot be written, or run.restart = "require" finds no good checkpoint; what
// take_up refuses is refused before a folder is made.
Decision decide_start(const Config& config, const RunPlan& plan, Group& group, RunLock& lock);

// Fits a restored state to this run: ConfigError where the global batch is another; DataError where the state is not
// that of the checkpoint's step; where the number of replicas has changed the length of an epoch, the position inside
// it. Logs what is unlike.
void fit_state(RunState& state, const RunPlan& plan, const Decision& start);

}  // namespace echelon::inline run
