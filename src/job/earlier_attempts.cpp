// SPDX-License-Identifier: Apache-2.0
// Corrects the folders of earlier attempts before a new one starts.
#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/log.hpp"
#include "job/run_folder.hpp"
#include "report/status.hpp"

namespace echelon::inline job {
namespace {

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

// Returns false for an incomplete line, and for one without a step. `later`: the line was recorded after the checkpoint
// was taken, as the checkpoint's own figures are.
bool is_row_until(const std::string& line, std::int64_t step, bool later) {
  const auto row = nlohmann::json::parse(line, nullptr, false);
  if (!row.is_object()) return false;
  const auto at = row.find("step");
  if (at == row.end() || !at->is_number_integer() || at->get<std::int64_t>() > step) return false;
  const auto type = row.find("type");
  return !later || (type != row.end() && *type == "checkpoint");
}

}  // namespace

void cut_metrics(const RunFolder& folder, std::int64_t step, std::int64_t number, std::int64_t bytes) {
  for (const std::string& attempt : attempts_of(folder.run)) {
    const std::string path = attempt + "/metrics.jsonl";
    if (attempt == folder.attempt || !std::filesystem::exists(path)) continue;
    const std::string before = read_file_whole(path);
    const std::int64_t own = number_of(attempt), end = bytes < 0 || own < number ? kAll : own > number ? 0 : bytes;
    std::string kept;
    std::int64_t at = 0;
    std::istringstream lines(before);
    for (std::string line; std::getline(lines, line);) {
      at += static_cast<std::int64_t>(line.size()) + 1;
      if (is_row_until(line, step, at > end)) kept += line + "\n";
    }
    if (kept != before) write_file_whole(path, kept);
  }
}

void conclude_died(const RunFolder& folder) {
  for (const std::string& attempt : attempts_of(folder.run)) {
    if (attempt == folder.attempt) continue;
    auto status = read_status(attempt);
    if (!status_is_verdict(attempt)) settle_status(attempt);  // its process was killed between writing the two files
    if (!status || (status->state != "running" && status->state != "died")) continue;
    status->state = "died";
    status->reason = "it was killed or crashed before it could write a reason";
    if (conclude_dead(attempt, *status))
      log_info("{} died after step {} or a little later: killed or crashed without a message", attempt, status->step);
  }
}

}  // namespace echelon::inline job
