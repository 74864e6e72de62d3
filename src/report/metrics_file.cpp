// SPDX-License-Identifier: Apache-2.0
#include "report/metrics_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "report/aside.hpp"
#include "report/figures_json.hpp"

namespace echelon::inline report {

MetricsRows read_metrics(const std::string& attempt) {
  const std::string path = attempt + "/metrics.jsonl";
  MetricsRows rows;
  std::istringstream lines(read_file_whole(path));
  std::int64_t number = 0;
  try {
    for (std::string line; std::getline(lines, line);) {
      ++number;
      const auto row = nlohmann::json::parse(line, nullptr, false);
      if (!row.is_object()) continue;
      const std::string type = row.value("type", "");
      if (type == "step") take_figures(row, rows.steps.emplace_back());
      if (type == "epoch") take_figures(row, rows.epochs.emplace_back());
      if (type == "test") take_figures(row, rows.tests.emplace_back());
      if (type == "snapshot") take_figures(row, rows.snapshots.emplace_back());
    }
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}:{}: a field has the wrong type: {}", path, number, error.what()));
  }
  if (rows.steps.empty()) return rows;
  for (const AsideEvaluation& aside : read_aside(std::filesystem::path(attempt).parent_path().string()))
    if (aside.figures.step >= rows.steps.front().step && aside.figures.step <= rows.steps.back().step)
      rows.tests.push_back(aside.figures);
  return rows;
}

}  // namespace echelon::inline report
