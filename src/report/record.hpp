// SPDX-License-Identifier: Apache-2.0
// The record of an attempt, read from its folder (results/<name>/run-<hash>/01).
//
//   config.toml   the effective config; decides which runs belong together
//   summary.json  measured figures (report/figures.hpp); written at the end, so an attempt that died has none
//   status.json   state, exit code and reason (report/status.hpp)
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.hpp"
#include "report/figures.hpp"
#include "report/status.hpp"

namespace echelon::inline report {

struct RunRecord : RunFigures {  // the figures are filled if has_summary
  std::string folder;
  std::string group;       // equal for runs that differ only in ranks, mesh, batch, seed, name and restart-neutral keys
  std::string experiment;  // equal for runs with one batch that differ only in ranks, mesh, seed and exchange keys
  std::string reason;      // from status.json
  bool has_summary = false;
  std::string codec_text = "none";  // "threshold (density 0.001, after 188 steps)"
  std::string mesh_text;            // "data 2 x pipeline 2 (1f1b)"
  Provenance provenance;
  std::shared_ptr<const Config> config;  // effective config; null without a config.toml
};

// Returns every attempt in and below the folders (attempts, runs or parents of runs, up to 6 levels deep), each once,
// in the order of paths. For a JSON report (a file), returns the attempts that it names, with paths relative to the
// working directory or to the report's folder. Throws ConfigError for a folder that does not exist or contains no
// attempt, and DataError, with the path, for a record that cannot be read. Only reads files.
std::vector<RunRecord> read_runs(const std::vector<std::string>& folders);

// Reads one attempt folder. Throws DataError if status.json or summary.json is incomplete or of another version,
// ConfigError if config.toml is not valid. Missing files leave the defaults.
RunRecord read_run(const std::string& folder);

// Returns why the figures of an attempt do not count in reports; "" if they do (it finished, and steps were timed).
std::string why_uncounted(const RunRecord& run);

}  // namespace echelon::inline report
