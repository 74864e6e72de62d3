// A scaling report as files. Each writer is one pure function from the report to text.
#pragma once

#include <string>
#include <vector>

#include "base/text.hpp"
#include "report/scaling.hpp"

namespace echelon::inline report {

// Where the report comes from.
struct ReportSource {
  std::string name;     // title and file name
  std::string command;  // that made it
  std::string date;     // UTC, "2026-01-31 12:00"
  std::string version, commit;
};

// The tables of a study, with rounded numbers and units; "-" for unknown figures.
Table rate_table(const Study& study);  // samples/s, speed-up, efficiency, loss and accuracy
Table time_table(const Study& study);  // parts of a step's time in percent
Table cost_table(const Study& study);  // bytes a step beside the formula, inside replicas, memory, time to first step
// "3 of 200 updates" for their staleness, or "5 gradients of a rank, 320 samples" of late replicas, of the rank and
// repetition that has most; "-": strategies that drop none.
std::string dropped_text(const RunFigures& run);
// "shaped: 1 Gbit/s, 50 us", "real".
std::string shaped_cell(const RunFigures& run);
bool has_dropped(const RunFigures& run);
inline constexpr const char* kOriginRuns = "runs";  // the line of folders begins so
// Builds, devices, hosts, MPI, commands and folders of the counted runs.
std::vector<std::string> origin_lines(const ScalingReport& report, const ReportSource& source);

std::string write_text(const ScalingReport& report);  // for the terminal
std::string write_markdown(const ScalingReport& report, const ReportSource& source);
std::string write_csv(const ScalingReport& report, const ReportSource& source);   // one row a study and row
std::string write_json(const ScalingReport& report, const ReportSource& source);  // everything, unrounded

// Writes <folder>/<name>.md, .csv and .json, each whole or not at all, and returns their paths. Creates the folder.
// Throws EnvironmentError.
std::vector<std::string> write_report(const ScalingReport& report, const ReportSource& source,
                                      const std::string& folder);

}  // namespace echelon::inline report
