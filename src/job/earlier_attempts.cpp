// Corrections in the folders of earlier attempts before a new one starts.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/log.hpp"
#include "job/run_folder.hpp"
#include "report/status.hpp"

namespace echelon::inline job {
namespace {

// False for an incomplete line, and for one without a step.
bool is_row_until(const std::string& line, std::int64_t step) {
  const auto row = nlohmann::json::parse(line, nullptr, false);
  if (!row.is_object()) return false;
  const auto at = row.find("step");
  return at != row.end() && at->is_number_integer() && at->get<std::int64_t>() <= step;
}

}  // namespace

void cut_metrics(const RunFolder& folder, std::int64_t step) {
  for (const std::string& attempt : attempts_of(folder.run)) {
    const std::string path = attempt + "/metrics.jsonl";
    if (attempt == folder.attempt || !std::filesystem::exists(path)) continue;
    const std::string before = read_file_whole(path);
    std::string kept;
    std::istringstream lines(before);
    for (std::string line; std::getline(lines, line);)
      if (is_row_until(line, step)) kept += line + "\n";
    if (kept != before) write_file_whole(path, kept);
  }
}

void conclude_died(const RunFolder& folder) {
  for (const std::string& attempt : attempts_of(folder.run)) {
    if (attempt == folder.attempt) continue;
    auto status = read_status(attempt);
    if (!status || (status->state != "running" && status->state != "died")) continue;
    status->state = "died";
    status->reason = "it was killed or crashed before it could write a reason";
    if (conclude(attempt, *status))
      log_info("{} died after step {} or a little later: killed or crashed without a message", attempt, status->step);
  }
}

}  // namespace echelon::inline job
