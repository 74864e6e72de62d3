// SPDX-License-Identifier: Apache-2.0
#include "cli/study_pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "cli/foresee_launch.hpp"
#include "cli/search_text.hpp"
#include "cli/study_claim.hpp"
#include "cli/study_figures.hpp"
#include "cli/study_network.hpp"
#include "cli/study_record.hpp"
#include "cli/study_verbs.hpp"
#include "config/parse.hpp"
#include "job/launch.hpp"
#include "parallel/layer_traffic.hpp"
#include "report/evidence.hpp"
#include "report/read_study.hpp"
#include "report/scaling.hpp"
#include "report/verdict.hpp"
#include "report/writers/html.hpp"
#include "report/writers/study.hpp"
#include "report/writers/study_data.hpp"
#include "study/search.hpp"
#include "study/slurm.hpp"
#include "train/run_plan.hpp"

namespace echelon::cli {
namespace {

// All cells; for a search, those proposed so far.
std::vector<StudyCell> known_cells(const StudyPlan& study) {
  return study.search ? StudySearch(study).cells() : cells_of(study);
}

// The prediction for a cell that is not over, with all ranks on one host.
struct Foretold {
  double memory_bytes = 0;  // rank that needs most; 0: not known
  std::string refusal;      // reason of `check`; "": it can run
};

Foretold foretell(const StudyPlan& study, const StudyCell& cell, const CellRecord& record) {
  if (record.memory_bytes > 0) return {.memory_bytes = record.memory_bytes, .refusal = ""};
  if (record.state == CellState::left_out) return {.refusal = record.reason};
  if (record.over() || !leaves_a_run(study, cell)) return {};
  try {
    CheckOptions launch;
    launch.config = cell.file, launch.sets = cell.sets, launch.ranks = cell.ranks;
    return {.memory_bytes = foresee_launch(launch).memory_bytes, .refusal = ""};
  } catch (const Error& error) {
    return {.refusal = error.what()};
  }
}

// Returns a section of study.md; "" for a single round.
std::string machine_markdown(const std::vector<RoundControl>& rounds) {
  std::istringstream lines(control_text(rounds));
  std::string items;
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) items += "* " + escaped_for_markdown(line) + "\n";
  return items.empty() ? "" : "\n## The machine\n\n" + items;
}

// For the recommended setting, adds whether to split data or model by layer among the ranks of a host.
void add_layers(StudyVerdict& verdict, const Evidence& evidence, const Config& base) {
  if (verdict.recommended < 0) return;
  const Setting& setting = evidence.settings[static_cast<std::size_t>(verdict.recommended)];
  const int inside = setting.row.ranks / std::max(1, setting.row.hosts);  // ranks per host
  if (inside < 2 || setting.row.mesh.parts() > 1) return;
  try {
    const double samples = static_cast<double>(setting.row.global_batch) / setting.row.ranks;
    const std::string line = layer_traffic_text(layer_traffic(open_inputs(base).graph, inside, samples), inside);
    if (!line.empty()) verdict.limits.push_back(line);
  } catch (const Error& error) {
    verdict.limits.push_back(fmt::format("Data or model split, by layer: unknown ({})", error.what()));
  }
}

// Writes study.md, .html, .json and .csv.
void write_pages(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source,
                 const std::string& folder, const std::vector<std::string>& origin, const std::string& network) {
  make_folders(folder);
  const std::string start = folder + "/study";
  write_file_whole(start + ".md", study_markdown(evidence, verdict, source) + network);
  write_file_whole(start + ".html", study_html(evidence, verdict, source, origin));
  write_file_whole(start + ".json", study_json(evidence, verdict, source));
  write_file_whole(start + ".csv", study_csv(evidence, verdict, source));
  fmt::print("\nwritten:\n  {0}.md\n  {0}.html\n  {0}.json\n  {0}.csv\n", start);
}

std::string submitted(const std::string& command) {
  std::string id;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe != nullptr)
    for (int c; (c = std::fgetc(pipe)) != EOF;) id += static_cast<char>(c);
  if (pipe == nullptr || ::pclose(pipe) != 0)
    throw EnvironmentError(fmt::format("{}: failed; the reason is above", command));
  return id.substr(0, id.find_first_of(";\n"));
}

}  // namespace

void print_cells(const StudyPlan& study) {
  const bool environments = !study.environments.empty();
  std::vector<std::string> header = {"ranks", "what", "round", "state", "seconds", "memory of a rank", "folder"};
  if (environments) header.insert(header.begin() + 1, "environment");
  Table table(header);
  std::vector<std::pair<std::string, std::vector<std::string>>> refused;  // reasons with their cells
  const std::vector<StudyCell> cells = known_cells(study);
  for (const StudyCell& cell : cells) {
    const CellRecord record = read_cell(folder_of(study, cell));
    const Foretold foretold = foretell(study, cell, record);
    std::vector<std::string> row = {std::to_string(cell.ranks),
                                    cell.text,
                                    std::to_string(cell.repeat),
                                    name_of(record.state),
                                    record.seconds > 0 ? fmt::format("{:.1f}", record.seconds) : "",
                                    !foretold.refusal.empty()   ? "cannot be run"
                                    : foretold.memory_bytes > 0 ? bytes_text(foretold.memory_bytes)
                                                                : "",
                                    folder_of(study, cell)};
    if (environments) row.insert(row.begin() + 1, fmt::format("{}", fmt::join(cell.environments, ", ")));
    table.row(row);
    if (foretold.refusal.empty()) continue;
    auto at = std::find_if(refused.begin(), refused.end(),
                           [&](const auto& reason) { return reason.first == foretold.refusal; });
    if (at == refused.end()) at = refused.insert(refused.end(), {foretold.refusal, {}});
    at->second.push_back(cell.id);
  }
  fmt::print("{}", table.text());
  for (const auto& [reason, ids] : refused) fmt::print("\ncannot be run: {}\n  {}\n", fmt::join(ids, ", "), reason);
  for (const StudyCell& cell : cells)
    if (cell.asked.size() > 1 && cell.repeat == 1)
      fmt::print("\none run: {} is {} on {}\n", cell.id, fmt::join(cell.asked, " and "), counted(cell.ranks, "rank"));
}

bool print_search(const StudyPlan& study, const StudySearch& search, const std::vector<CellRecord>& records) {
  fmt::print("\n{}", search_text(search, records, study));
  const std::string page = study.folder + "/study.md";
  make_folders(study.folder);
  write_file_whole(page, search_markdown(search, records, study) + network_markdown(study));
  const std::string csv = study.folder + "/study.csv";
  write_file_whole(csv, search_csv(search, records, study));
  fmt::print("written:\n  {}\n  {}\n", page, csv);
  double best = std::numeric_limits<double>::infinity();
  for (const CellRecord& record : records)
    if (const std::vector<double> figures = trial_rungs(study, record).figures; !figures.empty())
      best = std::fmin(best, figures.back());
  return study.maximises() ? -best >= study.goal.target : best <= study.goal.target;
}

bool print_study(const StudyPlan& study) {
  if (study.search) {
    const StudySearch search(study);
    std::vector<CellRecord> records;
    for (const StudyCell& cell : search.cells()) records.push_back(read_cell(folder_of(study, cell)));
    return print_search(study, search, records);
  }
  if (has_figures(study)) {
    print_figures(study);
    return true;
  }
  const Config base = base_config(study);
  const std::vector<StudyCell> cells = cells_of(study);
  const std::vector<CellRecord> records = cell_records(study, cells);
  const std::vector<RoundControl> rounds = rounds_of(study, cells, records);
  const Evidence evidence = evidence_of(study, cells, records);
  StudyVerdict verdict = make_verdict(evidence);
  add_layers(verdict, evidence, base);
  fmt::print("{}{}", study_text(evidence, verdict), control_text(rounds));
  if (evidence.settings.empty()) return verdict.met();
  const ReportSource source{study.name, command_line(), now_utc_minute_text(), kVersion, commit()};
  const ScalingReport report = make_scaling(read_runs({study.folder}));
  write_pages(evidence, verdict, source, study.folder, origin_lines(report, source),
              machine_markdown(rounds) + network_markdown(study));
  if (rounds.size() > 1) write_file_whole(study.folder + "/rounds.json", control_json(rounds));
  if (const std::string claim = write_claim(study, cells); !claim.empty()) fmt::print("  {}\n", claim);
  if (report.studies.empty()) return verdict.met();
  ReportSource runs = source;
  runs.name = "report";
  for (const std::string& path : write_report(report, runs, study.folder)) fmt::print("  {}\n", path);
  return verdict.met();
}

bool print_study_file(const std::string& path, const std::string& folder) {
  const StudyFile file = read_study(path);
  const StudyVerdict verdict = make_verdict(file.evidence);
  fmt::print("{}", study_text(file.evidence, verdict));
  const std::vector<std::string> origin = {
      fmt::format("{}, of {}, by echelon {} ({})", path, file.source.date, file.source.version, file.source.commit),
      "command: " + file.source.command};
  write_pages(file.evidence, verdict, file.source, folder, origin, "");
  return verdict.met();
}

void write_jobs(const StudyPlan& study, int jobs, bool submit) {
  std::string before;
  for (const SlurmJob& job :
       slurm_jobs(study, std::filesystem::read_symlink("/proc/self/exe"), std::filesystem::current_path(), jobs)) {
    make_folders(std::filesystem::path(job.path).parent_path());
    write_file_whole(job.path, job.text);
    const std::string sbatch =
        fmt::format("sbatch --parsable{} {}",
                    job.reports ? " --dependency=afterany" + (submit ? before : ":JOB:JOB") : "", job.path);
    const std::string id = submit ? submitted(sbatch) : "";
    before += ":" + id;
    fmt::print("{}{}\n", submit ? fmt::format("job {}  ", id) : "", submit ? job.path : sbatch);
  }
}

}  // namespace echelon::cli
