// status.json and metrics.jsonl of earlier attempts: the small JSON files that say how a run stands.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "train/run_folder.hpp"

namespace echelon {

using nlohmann::ordered_json;

nlohmann::ordered_json to_json(const Provenance& p) {
  return {{"version", p.version},      {"commit", p.git_hash}, {"config_hash", p.config_hash},
          {"hosts", p.hosts},          {"devices", p.devices}, {"mpi", p.mpi},
          {"ranks", p.ranks},          {"seed", p.seed},       {"job_id", p.job_id},
          {"command", p.command_line}, {"started", p.started}};
}

void write_status(const RunFolder& folder, const Status& status, const Provenance& provenance) {
  const ordered_json json = {{"state", status.state},           {"exit_code", status.exit_code},
                             {"reason", status.reason},         {"step", status.step},
                             {"checkpoint", status.checkpoint}, {"provenance", to_json(provenance)}};
  write_file_whole(folder.attempt + "/status.json",
                   json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

std::optional<Status> read_status(const std::string& attempt) {
  try {
    const auto json = ordered_json::parse(read_file_whole(attempt + "/status.json"));
    Status status;
    json.at("state").get_to(status.state);
    json.at("exit_code").get_to(status.exit_code);
    json.at("reason").get_to(status.reason);
    json.at("step").get_to(status.step);
    json.at("checkpoint").get_to(status.checkpoint);
    if (json.contains("provenance")) status.ranks = json.at("provenance").value("ranks", 0);
    return status;
  } catch (const EnvironmentError&) {
    return {};
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

void cut_metrics(const RunFolder& folder, std::int64_t step) {
  for (const std::string& attempt : attempts_of(folder.run)) {
    const std::string path = attempt + "/metrics.jsonl";
    if (attempt == folder.attempt || !std::filesystem::exists(path)) continue;
    const std::string before = read_file_whole(path);
    std::string kept;
    std::istringstream lines(before);
    for (std::string line; std::getline(lines, line);) {
      const auto row = nlohmann::json::parse(line, nullptr, false);
      if (row.is_object() && row.value("step", step + 1) <= step) kept += line + "\n";
    }
    if (kept != before) write_file_whole(path, kept);
  }
}

}  // namespace echelon
