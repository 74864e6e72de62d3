// SPDX-License-Identifier: Apache-2.0
// Writes a scaling report as files. Each writer is a pure function from the report to text.
#pragma once

#include <string>
#include <vector>

#include "base/text.hpp"
#include "report/scaling.hpp"

namespace echelon::inline report {

// The origin of the report.
struct ReportSource {
  std::string name;     // title and file name
  std::string command;  // command that made it
  std::string date;     // UTC, "2026-01-31 12:00"
  std::string version, commit;
};

// The tables of a study, with rounded numbers and units; "-" for unknown figures.
Table rate_table(const Study& study);  // samples/s, speed-up, efficiency, loss and accuracy
Table time_table(const Study& study);  // parts of a step's time in percent
Table cost_table(const Study& study);  // bytes per step and by formula, inside replicas, memory, time to first step
// "3 of 200 updates" dropped for their staleness, or "5 gradients of a rank, 320 samples" of late replicas, for the
// rank and repetition with the most; "-": strategies that drop none.
std::string dropped_text(const RunFigures& run);
// "shaped: 1 Gbit/s, 50 us" or "real".
std::string shaped_cell(const RunFigures& run);
bool has_dropped(const RunFigures& run);
inline constexpr const char* kOriginRuns = "runs";  // how the line of folders begins
// Returns lines about the counted runs: builds, devices, hosts, MPI, commands and folders.
std::vector<std::string> origin_lines(const ScalingReport& report, const ReportSource& source);

std::string write_text(const ScalingReport& report);  // for the terminal
std::string write_markdown(const ScalingReport& report, const ReportSource& source);
std::string write_csv(const ScalingReport& report, const ReportSource& source);   // one line per study and row
std::string write_json(const ScalingReport& report, const ReportSource& source);  // everything, unrounded

// Writes <folder>/<name>.md, .csv and .json, each whole or not at all, and returns their paths. Creates the folder.
// Throws EnvironmentError.
std::vector<std::string> write_report(const ScalingReport& report, const ReportSource& source,
                                      const std::string& folder);

}  // namespace echelon::inline report
