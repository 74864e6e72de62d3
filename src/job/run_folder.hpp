// The folder of a run: results/<name>/run-<config hash>/ with attempts 01/, 02/ .. inside; nothing is ever overwritten.
// What a run folder and an attempt hold is listed in train/README.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline job {

struct RunFolder {
  std::string run;      // results/<name>/run-<hash>
  std::string attempt;  // <run>/03
  std::string checkpoints() const { return run + "/checkpoints"; }
  // Where this attempt moves checkpoints that are damaged: <run>/damaged-before-03.
  std::string damaged() const { return run + "/damaged-before-" + attempt.substr(attempt.rfind('/') + 1); }
};

// results/<name>/run-<hash> of this config; touches nothing.
std::string run_path(const Config& config);
// The attempts of a run (folders whose names are 2 to 9 digits), oldest first; empty where there is none.
std::vector<std::string> attempts_of(const std::string& run);
// Makes the next attempt's folder (rank 0 alone calls it; the others are told). EnvironmentError where it cannot be
// written.
RunFolder make_attempt(const Config& config);
// Sets the checkpoints of earlier attempts aside, so that an attempt from the first step on does not mix with them:
// <run>/checkpoints becomes <run>/checkpoints-before-<attempt>. Nothing where there is none.
void set_checkpoints_aside(const RunFolder& folder);

// Cuts the rows of metrics.jsonl of every earlier attempt that lie beyond `step` (and a last line that was cut off by a
// kill), so that the attempts read one after another tell the run once.
void cut_metrics(const RunFolder& folder, std::int64_t step);
// Marks earlier attempts that are "running" by their status.json as "died": the caller has the run for itself.
void conclude_died(const RunFolder& folder);
// Removes temporary files (name.tmp-..) that a killed attempt left in the run's folder, attempts and checkpoints.
void remove_leftovers(const RunFolder& folder);

}  // namespace echelon::inline job
