// SPDX-License-Identifier: Apache-2.0
#include "report/status.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/file_faults.hpp"
#include "base/process.hpp"

namespace echelon::inline report {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

std::string status_path(const std::string& attempt) { return attempt + "/status.json"; }
std::string verdict_path(const std::string& attempt) { return attempt + "/verdict.json"; }

template <class T>
void take(const json& from, const char* key, T& to) {
  if (const auto at = from.find(key); at != from.end() && !at->is_null()) to = at->get<T>();
}

std::string text_of(const Status& status) {
  ordered_json object = {{"state", status.state},
                         {"exit_code", status.exit_code ? ordered_json(*status.exit_code) : ordered_json(nullptr)},
                         {"reason", status.reason},
                         {"step", status.step},
                         {"checkpoint", status.checkpoint}};
  if (!status.best.empty()) object["best_checkpoint"] = status.best;
  if (!status.damaged.empty()) object["damaged_checkpoints"] = status.damaged;
  object["provenance"] = to_json(status.provenance);
  return object.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Status status_of(const json& from) {
  Status status;
  from.at("state").get_to(status.state);
  if (const auto code = from.find("exit_code"); code != from.end() && !code->is_null())
    status.exit_code = code->get<int>();
  take(from, "reason", status.reason);
  take(from, "step", status.step);
  take(from, "checkpoint", status.checkpoint);
  take(from, "best_checkpoint", status.best);
  take(from, "damaged_checkpoints", status.damaged);
  status.provenance = provenance_of(from.value("provenance", json::object()));
  return status;
}

// Returns the content of a JSON file; "" if it does not exist or is not completely written.
std::string text_in(const std::string& path) {
  try {
    std::string text = read_file_whole(path);
    return json::accept(text) ? text : std::string();
  } catch (const EnvironmentError&) {
    return {};
  }
}
std::string verdict_text(const std::string& attempt) { return text_in(verdict_path(attempt)); }

// Creates the file with this content. Returns false if it exists.
bool write_new(const std::string& path, const std::string& content) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0 && errno == EEXIST) return false;
  if (fd < 0) throw EnvironmentError(fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
  // On a full disk the file stays empty. Its existence still marks the first caller, and status.json is tried next.
  if (write_some(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size())) sync_descriptor(fd);
  ::close(fd);
  return true;
}

}  // namespace

ordered_json to_json(const Provenance& p) {
  return {{"version", p.version}, {"commit", p.git_hash},   {"config_hash", p.config_hash},
          {"hosts", p.hosts},     {"devices", p.devices},   {"mpi", p.mpi},
          {"ranks", p.ranks},     {"lost_workers", p.lost}, {"seed", p.seed},
          {"job_id", p.job_id},   {"process", p.process},   {"command", p.command_line},
          {"started", p.started}};
}

Provenance provenance_of(const json& from) {
  Provenance p;
  take(from, "version", p.version);
  take(from, "commit", p.git_hash);
  take(from, "config_hash", p.config_hash);
  take(from, "hosts", p.hosts);
  take(from, "devices", p.devices);
  take(from, "mpi", p.mpi);
  take(from, "ranks", p.ranks);
  take(from, "lost_workers", p.lost);
  take(from, "seed", p.seed);
  take(from, "job_id", p.job_id);
  take(from, "process", p.process);
  take(from, "command", p.command_line);
  take(from, "started", p.started);
  return p;
}

void write_running(const std::string& attempt, const Status& status) {
  if (std::filesystem::exists(verdict_path(attempt))) return;
  write_file_whole(status_path(attempt), text_of(status));
  // A verdict may have been reached meanwhile. One that is not whole yet will be followed by its own status.json.
  settle_status(attempt);
}

bool conclude(const std::string& attempt, const Status& status) {
  const std::string text = text_of(status);
  if (!write_new(verdict_path(attempt), text)) return false;
  write_file_whole(status_path(attempt), text);
  return true;
}

bool conclude_dead(const std::string& attempt, const Status& status) {
  if (!verdict_text(attempt).empty()) return false;
  const std::string text = text_of(status);
  write_file_whole(verdict_path(attempt), text);
  write_file_whole(status_path(attempt), text);
  return true;
}

void change_verdict(const std::string& attempt, int exit_code, const std::string& why) {
  if (!is_concluded(attempt)) return;
  std::optional<Status> status = read_status(attempt);
  if (status && status->exit_code != exit_code) {
    status->exit_code = exit_code;
    status->reason += (status->reason.empty() ? "" : "; ") + why;
    write_file_whole(verdict_path(attempt), text_of(*status));
  }
  settle_status(attempt);
}

bool status_is_verdict(const std::string& attempt) {
  const std::string verdict = verdict_text(attempt);
  return verdict.empty() || text_in(status_path(attempt)) == verdict;
}

void settle_status(const std::string& attempt) {
  if (const std::string verdict = verdict_text(attempt); !verdict.empty())
    write_file_whole(status_path(attempt), verdict);
}

bool is_concluded(const std::string& attempt) {
  std::error_code ignored;
  return std::filesystem::exists(verdict_path(attempt), ignored);
}

std::optional<Status> read_status(const std::string& attempt) {
  Status status;
  try {
    const std::string verdict = verdict_text(attempt);
    status = status_of(json::parse(verdict.empty() ? read_file_whole(status_path(attempt)) : verdict));
  } catch (const EnvironmentError&) {
    return {};
  } catch (const json::exception&) {
    return {};
  }
  if (status.state == "running" && is_gone(status.provenance.process)) {
    status.state = "died";
    status.reason = "it was killed or crashed before it could write a reason (the process of rank 0 is gone)";
  }
  return status;
}

}  // namespace echelon::inline report
