// SPDX-License-Identifier: Apache-2.0
// The state of an attempt and its provenance.
//
//   status.json   while the attempt runs, rank 0 rewrites it every few seconds: "running", no exit code, updates done;
//                 afterwards it holds the final status
//   verdict.json  the final status. The first rank that reports it creates the file (O_EXCL), and nobody changes it:
//                 neither a rank that resumes later nor a delayed "running" can replace it. One thing may be added: a
//                 run was complete, but its launch did not end by itself (change_verdict)
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace echelon::inline report {

struct Provenance {
  std::string version, git_hash, config_hash, mpi, job_id, command_line, started;
  std::string process;               // process of rank 0, in the form of base/process.hpp
  std::vector<std::string> hosts;    // by rank
  std::vector<std::string> devices;  // by rank
  std::vector<std::string> lost;     // workers that the same launch lost before this attempt
  std::uint64_t seed = 0;
  int ranks = 0;  // 0: not known
};
nlohmann::ordered_json to_json(const Provenance& provenance);
// Missing fields keep their defaults. Throws nlohmann::json::exception for a field of the wrong type.
Provenance provenance_of(const nlohmann::json& from);

struct Status {
  std::string state = "running";  // running | finished | stopped | failed | died
  std::optional<int> exit_code;   // none while it runs, and for "died"
  std::string reason;
  std::int64_t step = 0;                  // updates done; for a failure, the step under way
  std::string checkpoint;                 // newest good checkpoint, relative to the run folder
  std::string best;                       // path chosen by checkpoint.keep_best; "": none
  std::vector<std::string> damaged = {};  // checkpoints that this attempt passed over, with the reason
  Provenance provenance = {};
};

// Rewrites status.json unless verdict.json exists. Any process may call it; blocks for two fsyncs. EnvironmentError.
void write_running(const std::string& attempt, const Status& status);
// The first call among all processes writes verdict.json and status.json and returns true; later calls return false and
// change nothing. Throws EnvironmentError if status.json cannot be written. On a full disk verdict.json may stay empty;
// that still counts as the first call.
bool conclude(const std::string& attempt, const Status& status);
// The same for a process that is the only one left to write there: it replaces a verdict.json that a killed process
// left incomplete.
bool conclude_dead(const std::string& attempt, const Status& status);
// Gives a concluded attempt another exit code, and a reason for it in addition to its own; has no effect if it has this
// code already or is not concluded. Throws EnvironmentError.
void change_verdict(const std::string& attempt, int exit_code, const std::string& why);
// status_is_verdict: whether status.json equals verdict.json, if there is one. settle_status makes them equal; throws
// EnvironmentError if status.json cannot be written.
bool status_is_verdict(const std::string& attempt);
void settle_status(const std::string& attempt);
// Returns whether any process has concluded the attempt.
bool is_concluded(const std::string& attempt);
// Reads the status from an attempt's folder; verdict.json takes precedence. "running" becomes "died" if the process of
// rank 0 ran on this host and no longer exists (is_gone). Returns none if there is no file or it cannot be parsed.
std::optional<Status> read_status(const std::string& attempt);

}  // namespace echelon::inline report
