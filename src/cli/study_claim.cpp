// SPDX-License-Identifier: Apache-2.0
#include "cli/study_claim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/version.hpp"
#include "checkpoint/weight_distance.hpp"
#include "cli/study_verbs.hpp"
#include "job/launch.hpp"
#include "report/claims/claim_record.hpp"
#include "report/claims/effects.hpp"
#include "report/evidence.hpp"
#include "report/record.hpp"
#include "report/wire_table.hpp"
#include "study/cell_record.hpp"
#include "study/claim_section.hpp"

namespace echelon::cli {
namespace {

std::string lock_of(const StudyPlan& study) { return study.folder + "/claim.lock.json"; }

void put_sets(const StudyPlan& study, const std::vector<std::string>& sets, ClaimCell& cell) {
  for (const std::string& set : sets) {
    const std::size_t at = set.find('=');
    const std::string key = set.substr(0, at), value = at == std::string::npos ? "" : set.substr(at + 1);
    const bool quoted = value.size() > 1 && value.front() == '"' && value.back() == '"';
    const bool is_axis =
        std::any_of(study.axes.begin(), study.axes.end(), [&](const StudyAxis& axis) { return axis.key == key; });
    (is_axis ? cell.keys : cell.sets)[key] = quoted ? value.substr(1, value.size() - 2) : value;
  }
}

// The settings that a cell's run stands for, one per environment of the cell. Ranks, variant and axes tell them apart,
// in addition to what the variant sets.
std::vector<ClaimCell> settings_of(const StudyPlan& study, const StudyCell& cell) {
  std::vector<ClaimCell> made;
  for (const StudyChoice& choice : study_choices(study)) {
    const bool asks = cell.asked.empty()
                          ? choice.text() == cell.text
                          : std::find(cell.asked.begin(), cell.asked.end(), choice.text()) != cell.asked.end();
    if (!asks) continue;
    for (const std::string& environment : cell.environments) {
      ClaimCell one{.keys = {{"ranks", std::to_string(cell.ranks)}}, .seed = cell.seed};
      if (!choice.words.empty() && !choice.words.front().empty()) one.keys["variant"] = choice.words.front();
      if (!environment.empty()) one.keys["environment"] = environment;
      put_sets(study, choice.sets, one);
      made.push_back(std::move(one));
    }
  }
  return made;
}

// Adds bytes per step by rank, from the matrix of all messages. Serving ranks come after training ranks.
void add_wire(const RunRecord& run, std::map<std::string, double>& figures) {
  const WireBytes bytes = read_wire(run.folder);
  const auto trains = [&](std::size_t rank) { return static_cast<double>(rank) < run.ranks; };
  std::vector<double> sent(bytes.size()), received(bytes.size());
  double to_servers = 0, from_servers = 0;
  for (std::size_t from = 0; from < bytes.size(); ++from)
    for (std::size_t to = 0; to < bytes.size(); ++to) {
      sent[from] += bytes[from][to];
      received[to] += bytes[from][to];
      if (trains(from) && !trains(to)) to_servers += bytes[from][to];
      if (!trains(from) && trains(to)) from_servers += bytes[from][to];
    }
  if (bytes.empty()) return;
  figures["wire_sent.largest"] = *std::max_element(sent.begin(), sent.end());
  figures["wire_received.largest"] = *std::max_element(received.begin(), received.end());
  figures["to_servers"] = to_servers;
  figures["from_servers"] = from_servers;
}

double weights_distance(const std::string& reference, const std::string& attempt) {
  double furthest = 0;
  for (const TensorDistance& one : weight_distances(*open_weights(reference), *open_weights(attempt)))
    furthest = std::max(furthest, one.relative());
  return furthest;
}

// Returns the attempt of the reference cell with this cell's seed; "" if it did not finish.
std::string reference_of(const StudyPlan& study, const std::vector<StudyCell>& cells, const StudyCell& of,
                         const Claim& claim) {
  for (const StudyCell& cell : cells) {
    const std::vector<ClaimCell> settings = settings_of(study, cell);
    const auto is_reference = [&](const ClaimCell& one) { return matches(one, claim.reference); };
    if (cell.repeat != of.repeat || std::none_of(settings.begin(), settings.end(), is_reference)) continue;
    if (const CellRecord record = read_cell(folder_of(study, cell)); record.state == CellState::finished)
      return record.attempt;
  }
  return {};
}

std::map<std::string, double> figures_of(const StudyPlan& study, const std::vector<StudyCell>& cells,
                                         const StudyCell& cell, const CellRecord& record, ClaimRecord& into) {
  if (record.attempt.empty()) return read_figures(folder_of(study, cell));
  const RunRecord run = read_run(record.attempt);
  into.devices = run.device_text.empty() ? run.device : run.device_text;
  std::map<std::string, double> figures = flat_figures(run);
  add_wire(run, figures);
  figures["cell_s"] = record.seconds;
  figures["sharpness"] = record.sharpness;
  figures["price"] = price_of(base_config(study).cost, std::max(1, run.hosts), cell.ranks, record.seconds);
  if (into.claim.reference.empty()) return figures;
  const std::string reference = reference_of(study, cells, cell, into.claim);
  if (!reference.empty()) figures["weights_distance"] = weights_distance(reference, record.attempt);
  return figures;
}

void add_cell(const StudyPlan& study, const std::vector<StudyCell>& cells, const StudyCell& cell,
              const CellRecord& record, ClaimRecord& into) {
  std::map<std::string, double> figures;
  if (record.state == CellState::finished)
    figures = claimed_figures(into.claim, figures_of(study, cells, cell, record, into));
  for (ClaimCell& made : settings_of(study, cell)) {
    made.outcome = record.outcome();
    made.figures = figures;
    into.cells.push_back(std::move(made));
  }
  into.machine_s += record.seconds;
}

}  // namespace

void register_claim(const StudyPlan& study) {
  const std::optional<Claim> claim = read_claim(study.file);
  if (!claim || std::filesystem::exists(lock_of(study))) return;
  make_folders(study.folder);
  const nlohmann::ordered_json lock = {{"hash", claim->hash}, {"date", now_utc_minute_text()}};
  write_file_whole(lock_of(study), lock.dump() + "\n");
}

std::string write_claim(const StudyPlan& study, const std::vector<StudyCell>& cells) {
  const std::optional<Claim> claim = read_claim(study.file);
  if (!claim) return {};
  ClaimRecord record{.claim = *claim, .study = study.name, .commit = commit(), .date = now_utc_minute_text()};
  for (const StudyCell& cell : cells)
    if (const CellRecord state = read_cell(folder_of(study, cell)); !state.outcome().empty())
      add_cell(study, cells, cell, state, record);
  if (std::filesystem::exists(lock_of(study))) try {
      const auto lock = nlohmann::json::parse(read_file_whole(lock_of(study)));
      lock.at("hash").get_to(record.registered_hash);
      lock.at("date").get_to(record.registered_date);
    } catch (const nlohmann::json::exception& error) {
      throw DataError(fmt::format("{}: {}", lock_of(study), error.what()));
    }
  const std::string path = study.folder + "/claim.json";
  write_file_whole(path, claim_json(record));
  return path;
}

}  // namespace echelon::cli
