// SPDX-License-Identifier: Apache-2.0
// echelon report: reads records of runs and writes scaling tables, or files for other programs.
#include <fmt/format.h>

#include <cstdio>

#include "base/error.hpp"
#include "base/version.hpp"
#include "cli/options.hpp"
#include "cli/study_pages.hpp"
#include "job/launch.hpp"
#include "report/answers.hpp"
#include "report/convert/mllog.hpp"
#include "report/convert/tensorboard.hpp"
#include "report/figures.hpp"
#include "report/read_study.hpp"
#include "report/record.hpp"
#include "report/scaling.hpp"
#include "report/verdict.hpp"
#include "report/writers/claims.hpp"
#include "report/writers/writers.hpp"

namespace echelon::cli {
namespace {

int print_written(const std::vector<std::string>& paths) {
  std::fputs("written:\n", stdout);
  for (const std::string& path : paths) fmt::print("  {}\n", path);
  return kExitOk;
}

// Converts every attempt that has rows, finished or not.
int convert(const ReportOptions& options) {
  const std::vector<RunRecord> runs = read_runs(options.runs);
  std::vector<std::string> paths;
  if (!options.tensorboard.empty()) paths = write_tensorboard(runs, options.tensorboard);
  if (!options.mllog.empty()) {
    const std::vector<std::string> more = write_mllog(runs, options.mllog);
    paths.insert(paths.end(), more.begin(), more.end());
  }
  if (paths.empty()) throw DataError("none of the attempts has a metrics.jsonl, so there is nothing to convert");
  return print_written(paths);
}

int print_claims(const ReportOptions& options) {
  const std::vector<JudgedClaim> claims = judge_claims(read_claim_records(options.claims));
  std::fputs(claims_text(claims).c_str(), stdout);
  std::fputs("\n", stdout);
  const bool named = options.name != ReportOptions().name;
  return print_written(write_claims(claims, options.out, named ? options.name : "claims"));
}

// Returns the study's answer if a single study's folder with its record was given.
std::vector<std::string> answers(const ReportOptions& options, const ScalingReport& report) {
  const std::string record = options.runs.front() + "/study.json";
  if (options.runs.size() == 1 && is_study(record)) return {make_verdict(read_study(record).evidence).headline};
  return answers_of(report.counted);
}

}  // namespace

int run_report(const ReportOptions& options) {
  if (options.figures) {
    std::fputs(figures_markdown().c_str(), stdout);
    return kExitOk;
  }
  if (!options.claims.empty()) return print_claims(options);
  if (options.runs.empty()) throw ConfigError("no runs were given; see 'echelon report --help'");
  if (options.name.empty() || options.name.find('/') != std::string::npos)
    throw ConfigError(fmt::format(
        "--name {}: must be a file name without folders, such as \"scaling\"; --out takes the folder", options.name));
  if (!options.tensorboard.empty() || !options.mllog.empty()) return convert(options);
  if (options.runs.size() == 1 && is_study(options.runs.front()))
    return print_study_file(options.runs.front(), options.out) ? kExitOk : kExitUnmet;
  ScalingReport report = make_scaling(read_runs(options.runs));
  report.answers = answers(options, report);
  ReportSource source{options.name, "echelon report", now_utc_minute_text(), kVersion, commit()};
  for (const std::string& run : options.runs) source.command += " " + run;
  source.command += fmt::format(" --out {} --name {}", options.out, options.name);
  std::fputs(write_text(report).c_str(), stdout);
  if (report.studies.empty())
    throw DataError("none of the runs finished, so there is nothing to report; the reasons are above");
  return print_written(write_report(report, source, options.out));
}

}  // namespace echelon::cli
