// The state of an attempt and its provenance.
//
//   status.json   while the attempt runs, rank 0 rewrites it every few seconds: "running", no exit code, updates done;
//                 afterwards the final status
//   verdict.json  the final status, created (O_EXCL) by the first rank that reports it and never changed: neither a
//   rank
//                 that resumes later nor a delayed "running" can replace it
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace echelon::inline report {

struct Provenance {
  std::string version, git_hash, config_hash, mpi, job_id, command_line, started;
  std::string process;               // of rank 0, as base/process.hpp has it
  std::vector<std::string> hosts;    // by rank
  std::vector<std::string> devices;  // by rank
  std::vector<std::string> lost;     // workers that were lost before this attempt, in the same launch
  std::uint64_t seed = 0;
  int ranks = 0;  // 0: not known
};
nlohmann::ordered_json to_json(const Provenance& provenance);
// Fields that are missing keep their defaults; nlohmann::json::exception for one of another type.
Provenance provenance_of(const nlohmann::json& from);

struct Status {
  std::string state = "running";  // running | finished | stopped | failed | died
  std::optional<int> exit_code;   // none while it runs, and for "died"
  std::string reason;
  std::int64_t step = 0;                  // updates done; of a failure, the step under way
  std::string checkpoint;                 // newest good one, relative to the run folder
  std::string best;                       // of checkpoint.keep_best, likewise; "": none
  std::vector<std::string> damaged = {};  // texts: checkpoints that this attempt passed over, why
  Provenance provenance = {};
};

// Rewrites status.json, unless verdict.json exists. Throws EnvironmentError. Any process; blocks for two fsyncs.
void write_running(const std::string& attempt, const Status& status);
// The first call among all processes writes verdict.json and status.json and returns true; later ones return false and
// change nothing. Throws EnvironmentError where status.json cannot be written; a full disk may leave verdict.json
// empty, which still counts as the first call.
bool conclude(const std::string& attempt, const Status& status);
// Likewise for a process that is the only one left to write there: a verdict.json that a killed process has left
// incomplete does not count, and is replaced.
bool conclude_dead(const std::string& attempt, const Status& status);
// Whether status.json is the verdict, where there is one; and makes it so. EnvironmentError where it cannot be written.
bool status_is_verdict(const std::string& attempt);
void settle_status(const std::string& attempt);
// Whether any process has concluded the attempt.
bool is_concluded(const std::string& attempt);
// Of an attempt's folder; verdict.json is preferred. "running" becomes "died" where the process of rank 0 was on this
// host and no longer exists (is_gone). None where there is no file or it cannot be parsed.
std::optional<Status> read_status(const std::string& attempt);

}  // namespace echelon::inline report
