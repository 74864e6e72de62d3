// SPDX-License-Identifier: Apache-2.0
#include "job/run_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "config/parse.hpp"
#include "job/launch.hpp"
#include "report/status.hpp"

namespace echelon::inline job {

namespace fs = std::filesystem;

namespace {

// Returns the number of an attempt's folder ("01", "123"); 0 for other names.
int attempt_number(const std::string& name) {
  constexpr std::size_t kMostDigits = 9;
  const bool digits = std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits && name.size() >= 2 && name.size() <= kMostDigits ? std::stoi(name) : 0;
}

// Returns the attempts of a run by number.
std::vector<std::pair<int, std::string>> numbered_attempts(const std::string& run) {
  std::vector<std::pair<int, std::string>> found;
  std::error_code error;
  for (fs::directory_iterator entry(run, error), end; !error && entry != end; entry.increment(error))
    if (const int number = attempt_number(entry->path().filename().string()); number > 0)
      found.emplace_back(number, entry->path().string());
  std::sort(found.begin(), found.end());
  return found;
}

// Temporary files of attempts that were killed or are still writing.
std::vector<fs::path> leftovers_in(const std::string& run) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(run, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().find(".tmp-") != std::string::npos) found.push_back(entry->path());
  return found;
}

}  // namespace

std::string run_path(const Config& config) {
  return fmt::format("{}/{}/run-{}", config.run.results, config.name, hex64(config_hash(config)));
}

int number_of(const std::string& attempt) { return attempt_number(fs::path(attempt).filename().string()); }

std::vector<std::string> attempts_of(const std::string& run) {
  std::vector<std::string> paths;
  for (auto& [number, path] : numbered_attempts(run)) paths.push_back(std::move(path));
  return paths;
}

RunFolder make_attempt(const Config& config) {
  RunFolder folder{.run = run_path(config), .attempt = {}};
  make_folders(folder.checkpoints());
  const auto earlier = numbered_attempts(folder.run);
  for (int number = earlier.empty() ? 1 : earlier.back().first + 1;; ++number) {
    folder.attempt = fmt::format("{}/{:02}", folder.run, number);
    if (::mkdir(folder.attempt.c_str(), 0777) == 0) return folder;
    if (errno != EEXIST)
      throw EnvironmentError(fmt::format("{}: the folder cannot be created: {}", folder.attempt, std::strerror(errno)));
  }
}

void set_checkpoints_aside(const RunFolder& folder) {
  std::error_code error;
  if (!fs::exists(folder.checkpoints(), error) || fs::is_empty(folder.checkpoints(), error)) return;
  const std::string aside =
      fmt::format("{}/checkpoints-before-{}", folder.run, fs::path(folder.attempt).filename().string());
  fs::rename(folder.checkpoints(), aside, error);
  if (error)
    throw EnvironmentError(fmt::format("{}: cannot be moved aside: {}", folder.checkpoints(), error.message()));
  make_folders(folder.checkpoints());
}

void remove_leftovers(const RunFolder& folder) {
  std::error_code ignored;
  for (const fs::path& path : leftovers_in(folder.run)) fs::remove(path, ignored);
}

void tidy_finished(const RunFolder& folder, RunLock& lock) {
  if (leftovers_in(folder.run).empty() && status_is_verdict(folder.attempt)) return;
  try {
    if (!lock.held()) lock.take(folder.run, job_id());
    remove_leftovers(folder);
    settle_status(folder.attempt);
  } catch (const EnvironmentError& error) {
    log_debug("{} is left unchanged: {}", folder.run, error.what());
  }
}

}  // namespace echelon::inline job
