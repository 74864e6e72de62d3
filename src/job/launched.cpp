// SPDX-License-Identifier: Apache-2.0
#include "job/launched.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/launchers.hpp"

namespace echelon::inline job {
namespace {

constexpr std::array<std::string_view, 4> kOpenMpi = {"mpirun", "mpiexec", "orterun", "prterun"};

// Reads name, state and parent from /proc/PID/stat, "4711 (name) S 1 ..", whose name may contain parentheses; returns
// false if there is no process.
bool read_stat(Launched& process) {
  std::ifstream file("/proc/" + std::to_string(process.pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t begin = line.find('('), end = line.rfind(") ");
  if (begin == std::string::npos || end == std::string::npos) return false;
  process.name = line.substr(begin + 1, end - begin - 1);
  std::istringstream rest(line.substr(end + 2));
  return static_cast<bool>(rest >> process.state >> process.parent);
}

bool has_word(Launched& process, const std::string& word) {
  std::ifstream environment("/proc/" + std::to_string(process.pid) + "/environ");
  bool found = false;
  for (std::string one; std::getline(environment, one, '\0');) {
    found |= one == word;
    const std::string_view name = std::string_view(one).substr(0, one.find('='));
    process.rank |= names_rank(name);
  }
  return found;
}

}  // namespace

std::vector<Launched> launched_with(const std::string& word) {
  std::vector<Launched> found, zombies;
  std::set<pid_t> pids;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    Launched process;
    if (std::from_chars(name.data(), name.data() + name.size(), process.pid).ec != std::errc()) continue;
    if (!read_stat(process)) continue;
    if (process.state == 'Z') {
      zombies.push_back(process);
    } else if (has_word(process, word)) {
      pids.insert(process.pid);
      found.push_back(process);
    }
  }
  for (const Launched& zombie : zombies)
    if (pids.contains(zombie.parent)) found.push_back(zombie);
  return found;
}

bool is_open_mpi_launcher(const Launched& process) {
  return std::find(kOpenMpi.begin(), kOpenMpi.end(), process.name) != kOpenMpi.end();
}

void remove_session_folder(pid_t launcher) {
  namespace fs = std::filesystem;
  const char* folder = std::getenv("TMPDIR");
  std::error_code ignored;
  for (fs::directory_iterator entry(folder && *folder ? folder : "/tmp", ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with("ompi.") || !name.ends_with("." + std::to_string(::getuid()))) continue;
    std::error_code failed;
    if (fs::remove_all(entry->path() / ("pid." + std::to_string(launcher)), failed) > 0 && !failed)
      fs::remove(entry->path(), failed);  // fails if it contains another launcher's folder
  }
}

namespace {

// Whether its main thread, which runs the event loop, waits for a lock; false if /proc does not show it.
bool waits_for_itself(const Launched& launcher) {
  std::string where;
  std::ifstream("/proc/" + std::to_string(launcher.pid) + "/wchan") >> where;
  return where.find("futex") != std::string::npos;
}

}  // namespace

double UnnoticedEnds::look(const std::vector<Launched>& processes, double passed_s) {
  std::map<pid_t, double> now_s;
  double longest_s = 0;
  for (const Launched& launcher : processes) {
    if (!is_open_mpi_launcher(launcher) || launcher.state == 'Z') continue;
    bool lives = false, ended = false;
    for (const Launched& child : processes) {
      if (child.parent != launcher.pid) continue;
      (child.state == 'Z' ? ended : lives) = true;
    }
    if (!ended && (lives || !waits_for_itself(launcher))) continue;
    const bool stopped = launcher.state == 'T' || launcher.state == 't';
    const auto before = since_s_.find(launcher.pid);
    const double s = before == since_s_.end() ? 0 : before->second + (stopped ? 0 : passed_s);
    now_s[launcher.pid] = s;
    longest_s = std::max(longest_s, s);
  }
  since_s_ = std::move(now_s);
  return longest_s;
}

}  // namespace echelon::inline job
