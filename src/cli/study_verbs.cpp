// SPDX-License-Identifier: Apache-2.0
#include "cli/study_verbs.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/launchers.hpp"
#include "cli/allreduce_bench.hpp"
#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "config/parse.hpp"
#include "job/launcher.hpp"
#include "job/shaped_network.hpp"
#include "job/signals.hpp"
#include "study/cell_record.hpp"
#include "study/search.hpp"

extern "C" char** environ;

namespace echelon::cli {
namespace {

constexpr const char* kOut = "/out.txt";
constexpr const char* kErrors = "/errors.txt";
constexpr std::chrono::milliseconds kLook{50};
constexpr double kPatience_s = 10;  // for a process to end after a signal

std::string path_in(const std::string& folder) { return folder + "/figures.json"; }

void write_figures(const std::string& folder, const CellFigures& figures) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const auto& [name, value] : figures) all[name] = value;  // NaN is written as null
  make_folders(folder);
  write_file_whole(path_in(folder), all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

// Adds every number in the document, named by its path: "main.rows.0.step_s".
void flatten(const nlohmann::json& from, const std::string& name, CellFigures& figures) {
  if (from.is_number())
    figures[name] = from.get<double>();
  else if (from.is_structured())
    for (const auto& [key, value] : from.items()) flatten(value, name.empty() ? key : name + "." + key, figures);
}

// Variables that a launcher leaves in the environment of its ranks. Another launcher would take them for its own.
std::vector<std::string> launcher_variables() {
  std::vector<std::string> names;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string entry = *at, name = entry.substr(0, entry.find('='));
    if (is_left_by_launcher(name)) names.push_back(name);
  }
  return names;
}

// Runs a process to its end with its output in files of the folder. Returns its exit code, or that of a signal stop.
int run_process(const std::vector<std::string>& words, const std::string& folder) {
  make_folders(folder);
  std::vector<std::string> argv = {
      "sh", "-c",          "out=$1; errors=$2; shift 2; exec \"$@\" > \"$out\" 2> \"$errors\"",
      "sh", folder + kOut, folder + kErrors,
      "env"};
  for (const std::string& name : launcher_variables()) argv.insert(argv.end(), {"-u", name});
  argv.insert(argv.end(), words.begin(), words.end());
  Launcher process(argv, {});
  for (;; std::this_thread::sleep_for(kLook)) {
    if (const std::optional<int> code = process.poll()) return *code;
    const SignalWishes wishes = take_signal_wishes();
    if (!wishes.interrupt && !wishes.requeue) continue;
    process.end(kPatience_s);
    return wishes.interrupt ? kExitInterrupted : kExitRequeue;
  }
}

std::vector<std::string> words_of(const StudyPlan& study, const StudyCell& cell) {
  const std::string echelon = std::filesystem::read_symlink("/proc/self/exe");
  std::vector<std::string> words = {echelon}, sets;
  for (const std::string& set : cell.sets) sets.insert(sets.end(), {"--set", set});
  const auto add = [&](const std::vector<std::string>& more) { words.insert(words.end(), more.begin(), more.end()); };
  if (study.verb == "supervise") {
    add({"supervise"});
    add(cell.options);
    add({"--", "mpirun", "-n", std::to_string(cell.ranks), "--oversubscribe", "--bind-to", "none", echelon, "train",
         cell.file});
    add(sets);
    return words;
  }
  std::istringstream verb(study.verb);
  for (std::string word; verb >> word;) words.push_back(word);
  add({cell.file});
  add(sets);
  add(cell.options);
  if (study.verb == "plan") add({"--out", folder_of(study, cell), "--name", "plan"});
  if (study.verb == "bench update") add({"--json"});
  return words;
}

}  // namespace

bool leaves_a_run(const StudyPlan& study, const StudyCell& cell) {
  return cell.search.empty() && (study.verb == "train" || study.verb == "supervise");
}

int run_apart(const StudyPlan& study, const StudyCell& cell) {
  const std::string folder = folder_of(study, cell);
  const int code = run_process(words_of(study, cell), folder);
  if (code != kExitOk || study.verb == "supervise") return code;
  const std::string result = study.verb == "plan" ? "/plan.json" : kOut;
  CellFigures figures;
  flatten(nlohmann::json::parse(read_file_whole(folder + result)), "", figures);
  write_figures(folder, figures);
  return code;
}

int run_allreduce_cell(const StudyPlan& study, const StudyCell& cell, std::unique_ptr<Transport> part) {
  const Config config = parse_config(read_file_whole(cell.file), cell.file, cell.sets);
  Engine engine(with_network(std::move(part), config.network));
  Group all(engine, 0);
  int code = kExitOk;
  std::string error;
  try {
    const std::vector<AllreduceRow> rows = measure_allreduce(parse_bench_allreduce(cell.options), engine, nullptr);
    CellFigures figures;
    for (const AllreduceRow& row : rows) {
      const std::string name = fmt::format("{}.{}.", row.algorithm, row.bytes);
      figures[name + "p50_s"] = row.p50_s;
      figures[name + "p99_s"] = row.p99_s;
      figures[name + "bus_bytes_per_s"] = bus_bytes(row.bytes, engine.size()) / row.p50_s;
      figures[name + "wire_bytes"] = row.wire_bytes;
      figures[name + "messages"] = row.messages;
      figures[name + "steps"] = row.steps;
    }
    if (engine.rank() == 0) write_figures(folder_of(study, cell), figures);
  } catch (const ConfigError& refused) {  // all ranks throw the same
    code = refused.code(), error = refused.what();
  }
  if (engine.rank() == 0 && code != kExitOk) {
    make_folders(folder_of(study, cell));
    write_file_whole(folder_of(study, cell) + kErrors, error + "\n");
  }
  return code;
}

void write_search_figures(const StudyPlan& search, const std::string& folder) {
  const StudySearch trials(search);
  CellFigures figures;
  double best = std::nan("");
  const double sign = search.maximises() ? -1 : 1;
  for (std::size_t t = 0; t < trials.cells().size(); ++t) {
    const CellRecord record = read_cell(folder_of(search, trials.cells()[t]));
    const std::vector<double> rungs = trial_rungs(search, record).figures;
    if (!rungs.empty()) best = std::fmin(best, rungs.back());
    figures[fmt::format("best after {:04} trials", t + 1)] = sign * best;
  }
  figures["best"] = sign * best;
  figures["trials"] = static_cast<double>(trials.cells().size());
  write_figures(folder, figures);
}

CellFigures read_figures(const std::string& folder) {
  CellFigures figures;
  if (!std::filesystem::exists(path_in(folder))) return figures;
  try {
    const nlohmann::json all = nlohmann::json::parse(read_file_whole(path_in(folder)));
    for (const auto& [name, value] : all.items()) figures[name] = value.is_null() ? std::nan("") : value.get<double>();
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: {}", path_in(folder), error.what()));
  }
  return figures;
}

std::string failure_in(const std::string& folder) {
  if (!std::filesystem::exists(folder + kErrors)) return "";
  std::istringstream lines(read_file_whole(folder + kErrors));
  std::string last;
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) last = line;
  return last;
}

}  // namespace echelon::cli
