// How an attempt stands or ended, and where it was made.
//
//   status.json   while the attempt runs, rank 0 rewrites it every few seconds: "running", no exit code, updates done;
//                 afterwards, how it ended
//   verdict.json  how it ended, created by the first rank that can tell and never changed: a rank that wakes up late,
//                 or a last "running" that is under way, cannot take its place
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
  std::uint64_t seed = 0;
  int ranks = 0;  // 0: not known
};
nlohmann::ordered_json to_json(const Provenance& provenance);
// Fields that are missing keep their defaults; nlohmann::json::exception for one of another type.
Provenance provenance_of(const nlohmann::json& from);

struct Status {
  std::string state = "running";  // running | finished | stopped | failed | died
  std::optional<int> exit_code;   // none while it runs, and where it died
  std::string reason;
  std::int64_t step = 0;   // updates done; of a failure, the step under way
  std::string checkpoint;  // newest good one, relative to the run folder
  Provenance provenance;
};

// Rewrites status.json, unless the attempt has ended. Throws EnvironmentError.
void write_running(const std::string& attempt, const Status& status);
// The first call of all processes writes verdict.json and status.json and returns true; later ones change nothing.
// Throws EnvironmentError.
bool conclude(const std::string& attempt, const Status& status);
// Of an attempt's folder. One that runs by its file though its rank 0 is gone from this host has the state "died".
// None where there is no file, and where it cannot be understood.
std::optional<Status> read_status(const std::string& attempt);

}  // namespace echelon::inline report
