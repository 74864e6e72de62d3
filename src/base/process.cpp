#include "base/process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace echelon::inline base {
namespace {

// " <boot id> <PID namespace>"; " - -" where /proc does not show them.
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

std::string process_id_text() { return fmt::format("{}{}", ::getpid(), surroundings()); }

bool is_near(const std::string& id) { return id.ends_with(surroundings()); }

namespace {

// 0 where the process is not near.
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

bool is_stopped(const std::string& id) {
  const pid_t pid = pid_of(id);
  if (pid == 0) return false;
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);  // "4711 (name) T ..", and a name may hold parentheses
  const std::size_t name_end = line.rfind(") ");
  return name_end != std::string::npos && name_end + 2 < line.size() &&
         (line[name_end + 2] == 'T' || line[name_end + 2] == 't');
}

}  // namespace echelon::inline base
