// The record of an attempt, read from its folder (results/<name>/run-<hash>/01).
//
//   config.toml    the effective config: which runs belong together
//   summary.json   measured figures (report/figures.hpp); written at the end, so an attempt that died has none
//   status.json    state, exit code and reason (report/status.hpp)
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.hpp"
#include "report/figures.hpp"
#include "report/status.hpp"

namespace echelon::inline report {

struct RunRecord : RunFigures {  // figures are filled where has_summary
  std::string folder;
  std::string group;  // equal for runs that differ in ranks, mesh, batch, seed, name and restart-neutral keys alone
  std::string experiment;  // equal for runs that differ in ranks, mesh, seed and exchange keys alone, of one batch
  std::string reason;      // of status.json
  bool has_summary = false;
  std::string codec_text = "none";  // "threshold (density 0.001, after 188 steps)"
  std::string mesh_text;            // "data 2 x pipeline 2 (1f1b)"
  Provenance provenance;
  std::shared_ptr<const Config> config;  // effective; null where there is no config.toml
};

// Every attempt in and below the folders (attempts, runs or parents of runs, to 6 levels), each once, in order of path;
// of a JSON report (a file) the attempts that it names, by its paths from the working directory or from its own folder.
// ConfigError for a folder that does not exist or contains no attempt, DataError for a record that cannot be read, with
// its path. Reads files only.
std::vector<RunRecord> read_runs(const std::vector<std::string>& folders);

// One attempt folder. DataError where status.json or summary.json is incomplete or of another version; ConfigError
// where config.toml is not valid. Missing files leave defaults.
RunRecord read_run(const std::string& folder);

// Why the figures of an attempt do not count in reports; "" where they do: it finished, and steps were timed.
std::string why_uncounted(const RunRecord& run);

}  // namespace echelon::inline report
