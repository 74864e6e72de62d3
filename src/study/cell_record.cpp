// SPDX-License-Identifier: Apache-2.0
#include "study/cell_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"

namespace echelon::inline study {
namespace {

constexpr std::array<const char*, 7> kNames = {"waiting", "running",  "finished",     "diverged",
                                               "failed",  "left out", "stopped early"};

std::string path_in(const std::string& folder) { return folder + "/cell.json"; }

}  // namespace

std::string name_of(CellState state) { return kNames[static_cast<std::size_t>(state)]; }

std::string CellRecord::outcome() const {
  const bool known = state == CellState::finished || state == CellState::diverged || state == CellState::failed;
  return known ? name_of(state) : "";
}

CellRecord read_cell(const std::string& folder) {
  const std::string path = path_in(folder);
  CellRecord record;
  if (!std::filesystem::exists(path)) return record;
  try {
    const nlohmann::json from = nlohmann::json::parse(read_file_whole(path));
    const std::string state = from.at("state");
    const auto at = std::find(kNames.begin(), kNames.end(), state);
    if (at == kNames.end()) throw DataError(fmt::format("{}: unknown state \"{}\"", path, state));
    record.state = static_cast<CellState>(at - kNames.begin());
    from.at("exit_code").get_to(record.exit_code);
    from.at("reason").get_to(record.reason);
    from.at("attempt").get_to(record.attempt);
    from.at("seconds").get_to(record.seconds);
    record.deaths = from.value("deaths", 0);
    record.step = from.value("step", std::int64_t{});
    record.before = from.value("before", "");
    record.launch = from.value("launch", "");
    record.memory_bytes = from.value("foretold_memory_bytes", 0.0);
    if (from.contains("sharpness")) from.at("sharpness").get_to(record.sharpness);
    for (const nlohmann::json& rung : from.value("rungs", nlohmann::json::array()))
      record.rungs.push_back({.epochs = rung.at("epochs"),
                              .figure = rung.at("figure").is_null() ? std::nan("") : rung.at("figure").get<double>()});
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: {}; remove the file to run the cell again", path, error.what()));
  }
  return record;
}

void write_cell(const std::string& folder, const CellRecord& record) {
  make_folders(folder);
  nlohmann::ordered_json object = {{"state", name_of(record.state)},
                                   {"deaths", record.deaths},
                                   {"step", record.step},
                                   {"before", record.before},
                                   {"launch", record.launch},
                                   {"exit_code", record.exit_code},
                                   {"reason", record.reason},
                                   {"attempt", record.attempt},
                                   {"seconds", record.seconds},
                                   {"foretold_memory_bytes", record.memory_bytes}};
  if (record.repeat > 0) {
    object["setting"] = record.setting;
    object["environment"] = record.environment;
    object["round"] = record.repeat;
    object["seed"] = record.seed;
    object["control"] = record.control;
    object["outcome"] = record.outcome();
  }
  if (!std::isnan(record.sharpness)) object["sharpness"] = record.sharpness;
  for (const RungFigure& rung : record.rungs)  // NaN is written as null
    object["rungs"].push_back({{"epochs", rung.epochs}, {"figure", rung.figure}});
  write_file_whole(path_in(folder),
                   object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void remove_checkpoints(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> found;
  for (auto at = fs::recursive_directory_iterator(folder, error); !error && at != fs::recursive_directory_iterator();
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!at->is_directory(error) || !(name.starts_with("checkpoints") || name.starts_with("damaged-before"))) continue;
    found.push_back(at->path());
    at.disable_recursion_pending();
  }
  for (const fs::path& path : found) fs::remove_all(path, error);
}

}  // namespace echelon::inline study
