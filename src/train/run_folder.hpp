// The folder of a run: results/<name>/run-<config hash>/ with attempts 01/, 02/ .. inside; nothing is ever overwritten.
// What a run folder and an attempt hold is listed in train/README.md.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/schema.hpp"

namespace echelon {

struct Provenance {
  std::string version, git_hash, config_hash, mpi, job_id, command_line, started;
  std::vector<std::string> hosts;    // by rank
  std::vector<std::string> devices;  // by rank
  std::uint64_t seed = 0;
  int ranks = 1;
};
nlohmann::ordered_json to_json(const Provenance& provenance);

struct RunFolder {
  std::string run;      // results/<name>/run-<hash>
  std::string attempt;  // <run>/03
  std::string checkpoints() const { return run + "/checkpoints"; }
};

// results/<name>/run-<hash> of this config; touches nothing.
std::string run_path(const Config& config);
// The attempts of a run, oldest first; empty where there is none.
std::vector<std::string> attempts_of(const std::string& run);
// Makes the next attempt's folder (rank 0 alone calls it; the others are told). EnvironmentError where it cannot be
// written.
RunFolder make_attempt(const Config& config);
// Sets the checkpoints of earlier attempts aside, so that an attempt from the first step on does not mix with them:
// <run>/checkpoints becomes <run>/checkpoints-before-<attempt>. Nothing where there is none.
void set_checkpoints_aside(const RunFolder& folder);

// status.json: how the attempt stands or ended. Written whole at start ("running"), at the end, and by the watchdog.
struct Status {
  std::string state = "running";  // running | finished | stopped | failed
  int exit_code = 0;
  std::string reason;
  std::int64_t step = 0;
  std::string checkpoint;  // newest good one, relative to the run folder
  int ranks = 0;           // filled by read_status from the provenance; 0: not known
};
void write_status(const RunFolder& folder, const Status& status, const Provenance& provenance);
// Of an attempt's folder; none where the file is missing or cannot be understood.
std::optional<Status> read_status(const std::string& attempt);

// Cuts the rows of metrics.jsonl of every earlier attempt that lie beyond `step` (and a last line that was cut off by a
// kill), so that the attempts read one after another tell the run once.
void cut_metrics(const RunFolder& folder, std::int64_t step);
// Removes temporary files (name.tmp-..) that a killed attempt left in the run's folder, attempts and checkpoints.
void remove_leftovers(const RunFolder& folder);

}  // namespace echelon
