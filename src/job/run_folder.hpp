// SPDX-License-Identifier: Apache-2.0
// The folder of a run: results/<name>/run-<config hash>/ with attempts 01/, 02/ .. inside; no attempt overwrites
// another. Functions that write are called by rank 0, which holds the lock of the run (run_lock.hpp).
// results/RECORDS.md lists the content of a run folder and an attempt.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "job/run_lock.hpp"

namespace echelon::inline job {

struct RunFolder {
  std::string run;      // results/<name>/run-<hash>
  std::string attempt;  // <run>/03
  std::string checkpoints() const { return run + "/checkpoints"; }
  // The folder to which this attempt moves damaged checkpoints: <run>/damaged-before-03.
  std::string damaged() const { return run + "/damaged-before-" + attempt.substr(attempt.rfind('/') + 1); }
};

// Returns results/<name>/run-<hash> for this config. Reads and creates nothing.
std::string run_path(const Config& config);
// Returns the number of an attempt's folder; 0 for other folders.
int number_of(const std::string& attempt);
// Returns the attempts of a run (folders whose names are 2 to 9 digits), oldest first; empty if there is none.
std::vector<std::string> attempts_of(const std::string& run);
// Creates the folder of the next attempt, and <run>/checkpoints. Only rank 0 calls it. Safe against other processes,
// because mkdir decides who gets a number. Throws EnvironmentError if it cannot be created.
RunFolder make_attempt(const Config& config);
// Sets the checkpoints of earlier attempts aside, so that they do not mix with those of an attempt from the first step:
// renames <run>/checkpoints to <run>/checkpoints-before-<attempt>. No effect if it is empty. EnvironmentError.
void set_checkpoints_aside(const RunFolder& folder);

// Removes from metrics.jsonl of every earlier attempt incomplete lines, rows of steps above `step`, and rows recorded
// after the checkpoint to resume from was taken: those beyond `bytes` of attempt `number`, except rows of
// checkpoints, and those in attempts after it (bytes < 0: not known). Read in order, the attempts then contain each
// step and epoch once, even if rank 0 is behind the step of the checkpoint. Each file is replaced whole. Throws
// EnvironmentError.
void cut_metrics(const RunFolder& folder, std::int64_t step, std::int64_t number = 0, std::int64_t bytes = -1);
// Marks earlier attempts whose status.json reads "running" as "died". The caller holds the lock, so none runs.
void conclude_died(const RunFolder& folder);
// Removes temporary files (name.tmp-..) of killed attempts in the whole run folder; ignores errors.
void remove_leftovers(const RunFolder& folder);
// The same for a finished run, and settles status.json of the attempt that finished it, because its process may have
// been killed between its verdict and its exit. No effect if another process holds the run or the folder cannot be
// written.
void tidy_finished(const RunFolder& folder, RunLock& lock);

}  // namespace echelon::inline job
