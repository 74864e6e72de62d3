// The folder of a run: results/<name>/run-<config hash>/ with attempts 01/, 02/ .. inside; no attempt overwrites
// another. Functions that write are called by rank 0, which holds the lock of the run (run_lock.hpp). What a run folder
// and an attempt hold is listed in results/RECORDS.md.
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
  // Where this attempt moves checkpoints that are damaged: <run>/damaged-before-03.
  std::string damaged() const { return run + "/damaged-before-" + attempt.substr(attempt.rfind('/') + 1); }
};

// results/<name>/run-<hash> of this config; reads and creates nothing.
std::string run_path(const Config& config);
// The number of an attempt's folder; 0 for what is none.
int number_of(const std::string& attempt);
// The attempts of a run (folders whose names are 2 to 9 digits), oldest first; empty where there is none.
std::vector<std::string> attempts_of(const std::string& run);
// Creates the folder of the next attempt, and <run>/checkpoints. Rank 0 alone calls it. Safe beside another process:
// mkdir decides who gets a number. EnvironmentError where it cannot be created.
RunFolder make_attempt(const Config& config);
// Sets the checkpoints of earlier attempts aside, so that an attempt from the first step on does not mix with them:
// <run>/checkpoints is renamed to <run>/checkpoints-before-<attempt>. No effect where it is empty. EnvironmentError.
void set_checkpoints_aside(const RunFolder& folder);

// Removes from metrics.jsonl of every earlier attempt incomplete lines, rows of steps above `step`, and what was
// recorded after the checkpoint to resume from was taken: rows but those of checkpoints behind `bytes` of attempt
// `number`, and in attempts after it (bytes < 0: not known). The attempts, read one after another, then contain each
// step and epoch once, also where rank 0 is behind the step of the checkpoint. Each file is replaced whole.
// EnvironmentError.
void cut_metrics(const RunFolder& folder, std::int64_t step, std::int64_t number = 0, std::int64_t bytes = -1);
// Marks earlier attempts whose status.json still reads "running" as "died": the caller holds the lock, so none runs.
void conclude_died(const RunFolder& folder);
// Removes temporary files (name.tmp-..) of killed attempts in the whole run folder; errors are ignored.
void remove_leftovers(const RunFolder& folder);
// Likewise where the run is finished, with status.json of the attempt that finished it: its process may have been
// killed between its verdict and its end. No effect where another process holds the run, or the folder cannot be
// written.
void tidy_finished(const RunFolder& folder, RunLock& lock);

}  // namespace echelon::inline job
