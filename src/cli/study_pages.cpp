#include "cli/study_pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "cli/foresee_launch.hpp"
#include "cli/search_text.hpp"
#include "cli/study_claim.hpp"
#include "cli/study_network.hpp"
#include "config/parse.hpp"
#include "job/launch.hpp"
#include "parallel/layer_traffic.hpp"
#include "report/evidence.hpp"
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

// Of a search: those that were proposed.
std::vector<StudyCell> known_cells(const StudyPlan& study) {
  return study.search ? StudySearch(study).cells() : cells_of(study);
}

// Of the rank that takes most, as it was foretold when the cell began, or is now, with all ranks on one host.
std::string memory_of(const StudyPlan& study, const StudyCell& cell, const CellRecord& record) {
  double bytes = record.memory_bytes;
  if (bytes == 0 && !record.over()) try {
      CheckOptions launch;
      launch.config = study.file, launch.sets = cell.sets, launch.ranks = cell.ranks;
      bytes = foresee_launch(launch).memory_bytes;
    } catch (const Error&) {
      return "cannot be run";  // the reason is told when its turn comes
    }
  return bytes > 0 ? bytes_text(bytes) : "";
}

// The runs of all cells that finished, by variant.
std::vector<LabelledRun> runs_of(const StudyPlan& study, const std::vector<StudyCell>& cells) {
  std::vector<LabelledRun> runs;
  for (const StudyCell& cell : cells)
    if (const CellRecord record = read_cell(folder_of(study, cell)); record.state == CellState::finished)
      runs.push_back({cell.text, read_run(record.attempt)});
  return runs;
}

// Data or model split by layer among the ranks of a host, for the recommended setting.
void add_layers(StudyVerdict& verdict, const Evidence& evidence, const Config& base) {
  if (verdict.recommended < 0) return;
  const Setting& setting = evidence.settings[static_cast<std::size_t>(verdict.recommended)];
  const int inside = setting.row.ranks / std::max(1, setting.row.hosts);  // ranks of a host
  if (inside < 2 || setting.row.mesh.parts() > 1) return;
  try {
    const double samples = static_cast<double>(setting.row.global_batch) / setting.row.ranks;
    const std::string line = layer_traffic_text(layer_traffic(open_inputs(base).graph, inside, samples), inside);
    if (!line.empty()) verdict.lines.push_back(line);
  } catch (const Error& error) {
    verdict.lines.push_back(fmt::format("Data or model split, by layer: not known ({})", error.what()));
  }
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
  Table table({"ranks", "what", "round", "state", "seconds", "memory of a rank", "folder"});
  for (const StudyCell& cell : known_cells(study)) {
    const CellRecord record = read_cell(folder_of(study, cell));
    table.row({std::to_string(cell.ranks), cell.text, std::to_string(cell.repeat), name_of(record.state),
               record.seconds > 0 ? fmt::format("{:.1f}", record.seconds) : "", memory_of(study, cell, record),
               folder_of(study, cell)});
  }
  fmt::print("{}", table.text());
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
  const Config base = load_config(study.file, study.sets);
  const std::vector<StudyCell> cells = cells_of(study);
  const Evidence evidence = make_evidence(runs_of(study, cells), base.goal, base.cost);
  StudyVerdict verdict = make_verdict(evidence);
  add_layers(verdict, evidence, base);
  fmt::print("\n{}", study_text(evidence, verdict));
  if (evidence.settings.empty()) return verdict.met();
  const ReportSource source{study.name, command_line(), now_utc_minute_text(), kVersion, commit()};
  const std::string page = study.folder + "/study.md";
  write_file_whole(page, study_markdown(evidence, verdict, source) + network_markdown(study));
  const ScalingReport report = make_scaling(read_runs({study.folder}));
  const std::string html = study.folder + "/study.html";
  write_file_whole(html, study_html(evidence, verdict, source, origin_lines(report, source)));
  const std::string json = study.folder + "/study.json", csv = study.folder + "/study.csv";
  write_file_whole(json, study_json(evidence, verdict, source));
  write_file_whole(csv, study_csv(evidence, verdict, source));
  fmt::print("\nwritten:\n  {}\n  {}\n  {}\n  {}\n", page, html, json, csv);
  if (const std::string claim = write_claim(study, cells); !claim.empty()) fmt::print("  {}\n", claim);
  ReportSource runs = source;
  runs.name = "report";
  for (const std::string& path : write_report(report, runs, study.folder)) fmt::print("  {}\n", path);
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
