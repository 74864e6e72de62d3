// echelon scale: the cells of a study, one after another, each on part of the ranks of one launch.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/atomic_file.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "cli/options.hpp"
#include "cli/study_ledger.hpp"
#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "comm/mpi/world.hpp"
#include "config/parse.hpp"
#include "job/agree.hpp"
#include "job/launch.hpp"
#include "job/signals.hpp"
#include "report/evidence.hpp"
#include "report/scaling.hpp"
#include "report/verdict.hpp"
#include "report/writers/html.hpp"
#include "report/writers/study.hpp"
#include "run/attempt.hpp"
#include "study/placement.hpp"
#include "study/slurm.hpp"
#include "study/study.hpp"

namespace echelon::cli {
namespace {

// Ranks that take no part in a cell sleep between looks.
constexpr EngineOptions kIdle{.yield_s = 0, .patience_s = 0, .sleep_s = 1e-3, .long_sleep_s = 50e-3};

// This rank's part in a cell; its exit code.
int train_cell(const StudyPlan& study, const StudyCell& cell, std::unique_ptr<Transport> part) {
  begin_run();
  Engine engine(std::move(part));
  const auto load = [&](std::vector<std::string>& notes) { return load_config(study.file, cell.sets, &notes); };
  return Attempt(engine, {.load_config = load, .end_world = &MpiWorld::abort}).run();
}

// All ranks: the exit code of the cell.
int run_cell(const StudyPlan& study, const StudyCell& cell, Engine& launch, Group& all) {
  const std::vector<int> members = members_of(launch.transport().hosts(), cell.ranks, study.placement);
  const auto place = std::find(members.begin(), members.end(), launch.rank());
  const bool takes_part = place != members.end();
  std::unique_ptr<Transport> part =
      launch.split_transport(takes_part ? 1 : 0, static_cast<int>(place - members.begin()));
  int code = kExitOk;
  if (takes_part) {
    std::optional<StudyHeartbeat> heartbeat;
    if (launch.rank() == 0) heartbeat.emplace(cell);
    code = train_cell(study, cell, std::move(part));
  }
  return static_cast<int>(all.max(code));
}

int stop_by_signal(Group& all) {
  const SignalWishes wishes = take_signal_wishes();
  return static_cast<int>(all.max(wishes.interrupt ? kExitInterrupted : wishes.requeue ? kExitRequeue : kExitOk));
}

// All ranks; `ledger` on rank 0. Returns 0, or the code of a stop by a signal.
int run_cells(const StudyPlan& study, const std::vector<StudyCell>& cells, Engine& launch, StudyLedger* ledger) {
  Group all(launch, 0);
  for (;;) {
    int next = ledger ? ledger->next() : -1;
    all.broadcast(&next, sizeof next, 0);
    if (next < 0) return kExitOk;
    const double start_s = now_s();
    const int code = run_cell(study, cells[static_cast<std::size_t>(next)], launch, all);
    if (ledger) ledger->end(static_cast<std::size_t>(next), code, now_s() - start_s);
    if (code == kExitRequeue || code == kExitInterrupted) return code;
    if (const int stop = stop_by_signal(all); stop != kExitOk) return stop;
  }
}

StudyPlan study_of(const ScaleOptions& options) {
  StudyPlan study = load_study(options.study, options.sets);
  for (const std::int64_t k : options.ranks)
    if (std::find(study.ranks.begin(), study.ranks.end(), k) == study.ranks.end())
      throw ConfigError(
          fmt::format("--ranks {}: not a size of the study, whose ranks are {}", k, fmt::join(study.ranks, ", ")));
  if (!options.ranks.empty()) study.ranks = options.ranks;
  std::sort(study.ranks.begin(), study.ranks.end());
  return study;
}

StudyPlan study_for(const ScaleOptions& options, int ranks) {
  StudyPlan study = study_of(options);
  if (study.ranks.back() > ranks)
    throw ConfigError(fmt::format(
        "{}: the study goes up to {} ranks and this launch has {}; start it with mpirun -n {} (or srun), or name sizes "
        "that fit: --ranks 1,2",
        study.file, study.ranks.back(), ranks, study.ranks.back()));
  return study;
}

void print_cells(const StudyPlan& study) {
  Table table({"ranks", "what", "round", "state", "seconds", "folder"});
  for (const StudyCell& cell : cells_of(study)) {
    const CellRecord record = read_cell(folder_of(study, cell));
    table.row({std::to_string(cell.ranks), cell.text, std::to_string(cell.repeat), name_of(record.state),
               record.seconds > 0 ? fmt::format("{:.1f}", record.seconds) : "", folder_of(study, cell)});
  }
  fmt::print("{}", table.text());
}

// The runs of all cells that finished, by variant.
std::vector<LabelledRun> runs_of(const StudyPlan& study, const std::vector<StudyCell>& cells) {
  std::vector<LabelledRun> runs;
  for (const StudyCell& cell : cells)
    if (const CellRecord record = read_cell(folder_of(study, cell)); record.state == CellState::finished)
      runs.push_back({cell.text, read_run(record.attempt)});
  return runs;
}

// Prints the verdict with its evidence and writes study.md, and report.md, .csv and .json as `echelon report` does.
// Whether all goals were met.
bool print_study(const StudyPlan& study, const std::vector<StudyCell>& cells) {
  const Config base = load_config(study.file, study.sets);
  const Evidence evidence = make_evidence(runs_of(study, cells), base.goal, base.cost);
  const StudyVerdict verdict = make_verdict(evidence);
  fmt::print("\n{}", study_text(evidence, verdict));
  if (evidence.settings.empty()) return verdict.met();
  const ReportSource source{study.name, command_line(), now_utc_text(), kVersion, commit()};
  const std::string page = study.folder + "/study.md";
  write_file_whole(page, study_markdown(evidence, verdict, source));
  const ScalingReport report = make_scaling(read_runs({study.folder}));
  const std::string html = study.folder + "/study.html";
  write_file_whole(html, study_html(evidence, verdict, source, origin_lines(report, source)));
  fmt::print("\nwritten:\n  {}\n  {}\n", page, html);
  ReportSource runs = source;
  runs.name = "report";
  for (const std::string& path : write_report(report, runs, study.folder)) fmt::print("  {}\n", path);
  return verdict.met();
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

void write_jobs(const StudyPlan& study, bool submit) {
  std::string before;
  for (const SlurmJob& job :
       slurm_jobs(study, std::filesystem::read_symlink("/proc/self/exe"), std::filesystem::current_path())) {
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

// All ranks.
int run_study(const ScaleOptions& options, Engine& launch) {
  Group all(launch, 0);
  StudyPlan study;
  all_or_none(all, [&] { study = study_for(options, launch.size()); });
  const std::vector<StudyCell> cells = cells_of(study);
  std::unique_ptr<StudyLedger> ledger;
  if (launch.rank() == 0) {
    ledger = std::make_unique<StudyLedger>(study, cells, launch.transport().hosts());
    ledger->begin();
  }
  const int stop = run_cells(study, cells, launch, ledger.get());
  int code = stop;
  if (ledger) {
    const StudyPlan whole = load_study(options.study, options.sets);  // sizes of other jobs too
    const bool met = print_study(whole, cells_of(whole));
    if (const auto left = static_cast<std::int64_t>(ledger->left()); left > 0)
      fmt::print("{} left: {}\n", counted(left, "cell"),
                 stop != kExitOk ? "the same command goes on" : "a larger study.budget_hours runs them");
    if (stop == kExitOk && (ledger->any_failed() || (ledger->left() == 0 && !met))) code = kExitUnmet;
  }
  return static_cast<int>(all.max(code));
}

}  // namespace

int run_scale(const ScaleOptions& options) {
  if (options.list || options.report || options.slurm) {
    const StudyPlan study = study_of(options);
    if (options.list) print_cells(study);
    if (options.slurm) write_jobs(study, options.submit);
    return !options.report || print_study(study, cells_of(study)) ? kExitOk : kExitUnmet;
  }
  prepare_process();
  if (!under_launcher()) (void)study_for(options, 1);  // refused before MPI is touched
  MpiWorld world;
  const SignalWatch signals;
  set_log_level(LogLevel::warning);
  Engine launch(world.transport(), kIdle);
  try {
    return run_study(options, launch);
  } catch (const CommonError& error) {
    if (world.rank() == 0) std::fprintf(stderr, "echelon: error: %s\n", error.what());
    return error.code();
  } catch (const Error& error) {
    if (world.size() == 1) throw;
    std::fprintf(stderr, "echelon: error: rank %d: %s\n", world.rank(), error.what());
    MpiWorld::abort(error.code());
  }
}

}  // namespace echelon::cli
