// The folder of a run: results/<name>/run-<config hash>/ with attempts 01/, 02/ .. inside; nothing is ever overwritten.
#pragma once

#include <cstdint>
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

struct RunFolder {
  std::string run;      // results/<name>/run-<hash>
  std::string attempt;  // <run>/03
  std::string checkpoints() const { return run + "/checkpoints"; }
};

// Makes the next attempt's folder (rank 0 alone calls it; the others are told). EnvironmentError where it cannot be
// written.
RunFolder make_attempt(const Config& config);

// status.json: how the attempt stands or ended. Written whole at start ("running"), at the end, and by the watchdog.
struct Status {
  std::string state = "running";  // running | finished | stopped | failed
  int exit_code = 0;
  std::string reason;
  std::int64_t step = 0;
  std::string checkpoint;  // newest good one, relative to the run folder
};
void write_status(const RunFolder& folder, const Status& status, const Provenance& provenance);

}  // namespace echelon
