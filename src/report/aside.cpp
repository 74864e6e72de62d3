// SPDX-License-Identifier: Apache-2.0
#include "report/aside.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "report/figures_json.hpp"

namespace echelon::inline report {
namespace {

std::string path_in(const std::string& run) { return run + "/evaluation.jsonl"; }

}  // namespace

std::vector<AsideEvaluation> read_aside(const std::string& run) {
  std::vector<AsideEvaluation> all;
  const std::string path = path_in(run);
  if (!std::filesystem::exists(path)) return all;
  std::istringstream lines(read_file_whole(path));
  std::int64_t number = 0;
  try {
    for (std::string line; std::getline(lines, line);) {
      ++number;
      const auto row = nlohmann::json::parse(line);
      AsideEvaluation& one = all.emplace_back();
      take_figures(row, one.figures);
      one.checkpoint = row.value("checkpoint", "");
    }
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}:{}: is not a row of an evaluation: {}", path, number, error.what()));
  }
  return all;
}

void add_aside(const std::string& run, const AsideEvaluation& evaluation) {
  std::vector<AsideEvaluation> all = read_aside(run);
  std::erase_if(all, [&](const AsideEvaluation& other) { return other.figures.step == evaluation.figures.step; });
  const auto behind = std::find_if(all.begin(), all.end(), [&](const AsideEvaluation& other) {
    return other.figures.step > evaluation.figures.step;
  });
  all.insert(behind, evaluation);
  std::string text;
  for (const AsideEvaluation& one : all) {
    nlohmann::ordered_json row = {{"type", "aside"}};
    row.update(to_json(one.figures));
    row["checkpoint"] = one.checkpoint;
    text += row.dump() + "\n";
  }
  write_file_whole(path_in(run), text);
}

}  // namespace echelon::inline report
