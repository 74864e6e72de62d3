// SPDX-License-Identifier: Apache-2.0
#include "base/process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/launchers.hpp"

namespace echelon::inline base {
namespace {

// " <boot id> <PID namespace>"; " - -" if /proc does not show them.
const std::string& surroundings() {
  static const std::string text = [] {
    std::string boot = "-";
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    std::error_code error;
    const auto space = std::filesystem::read_symlink("/proc/self/ns/pid", error);
    return fmt::format(" {} {}", boot, error ? "-" : space.string());
  }();
  return text;
}

}  // namespace

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string process_id_text() { return fmt::format("{}{}", ::getpid(), surroundings()); }

bool is_near(const std::string& id) { return id.ends_with(surroundings()); }

namespace {

// Returns 0 if the process is not near.
pid_t pid_of(const std::string& id) {
  pid_t pid = 0;
  const std::errc error = std::from_chars(id.data(), id.data() + id.size(), pid).ec;
  return error != std::errc() || pid <= 0 || !is_near(id) ? 0 : pid;
}

}  // namespace

bool is_gone(const std::string& id) {
  const pid_t pid = pid_of(id);
  return pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

namespace {

// Returns /proc/PID/stat from field 3 on, "T 1 4711 ..", after the name, which may hold parentheses; "" for no process.
std::string stat_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(") ");
  return name_end == std::string::npos ? std::string() : line.substr(name_end + 2);
}

bool shows_stop(const std::string& stat) { return stat.starts_with('T') || stat.starts_with('t'); }

}  // namespace

bool is_stopped(const std::string& id) {
  const pid_t pid = pid_of(id);
  return pid > 0 && shows_stop(stat_of(pid));
}

std::uint64_t start_ticks(const std::string& id) {
  const pid_t pid = pid_of(id);
  if (pid == 0) return 0;
  std::istringstream fields(stat_of(pid));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  std::uint64_t ticks = 0;
  std::from_chars(field.data(), field.data() + field.size(), ticks);
  return fields ? ticks : 0;
}

namespace {

std::vector<pid_t> stopped_sibling_pids() {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc() || pid == ::getpid()) continue;
    const std::string stat = stat_of(pid);
    char state = 0;
    pid_t parent = 0;
    if (std::istringstream(stat) >> state >> parent && parent == ::getppid() && shows_stop(stat)) found.push_back(pid);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

void continue_siblings() {
  for (const pid_t pid : stopped_sibling_pids()) ::kill(pid, SIGCONT);
}

std::vector<std::string> stopped_siblings() {
  std::vector<std::string> texts;
  for (const pid_t pid : stopped_sibling_pids()) {
    std::ifstream environment("/proc/" + std::to_string(pid) + "/environ");
    std::string text = fmt::format("PID {}", pid);
    for (std::string word; std::getline(environment, word, '\0');)
      if (const std::size_t equals = word.find('='); names_rank(std::string_view(word).substr(0, equals)))
        text = fmt::format("rank {} (PID {})", word.substr(equals + 1), pid);
    texts.push_back(text);
  }
  return texts;
}

double resident_mb() {
  std::ifstream statm("/proc/self/statm");
  double all = 0, resident = 0;
  if (!(statm >> all >> resident)) return 0;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void kill_process(const std::string& id, std::uint64_t started_ticks) {
  if (started_ticks > 0 && start_ticks(id) == started_ticks) ::kill(pid_of(id), SIGKILL);
}

}  // namespace echelon::inline base
