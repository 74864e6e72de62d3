// What a run leaves behind, read back: one record an attempt folder (results/<name>/run-<hash>/01).
//
//   config.toml    the effective config: which runs belong together
//   summary.json   what was measured (report/figures.hpp); written at the end, so an attempt that died has none
//   status.json    how it ended and why (report/status.hpp)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/figures.hpp"
#include "report/status.hpp"

namespace echelon::inline report {

struct RunRecord : RunFigures {  // whose figures are known where there is a summary
  std::string folder;
  std::string group;  // equal for runs that differ in ranks, mesh, batch, seed, name and restart-neutral keys alone
  std::string experiment;  // equal for runs that should learn the same: in ranks, seed and exchange they may differ
  std::string reason;      // of status.json
  bool has_summary = false;
  std::string codec_text = "none";  // "threshold (density 0.001, after 188 steps)"
  std::string mesh_text;            // "data 2 x pipeline 2 (1f1b)"
  Provenance provenance;
};

// Every attempt in and below the folders (attempts, runs or parents of runs), each once, in order of path. ConfigError
// for a folder that is not there or holds no attempt, DataError for a record that cannot be understood.
std::vector<RunRecord> read_runs(const std::vector<std::string>& folders);

// One attempt folder.
RunRecord read_run(const std::string& folder);

}  // namespace echelon::inline report
