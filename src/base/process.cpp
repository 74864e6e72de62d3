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

bool is_gone(const std::string& id) {
  pid_t pid = 0;
  const std::errc error = std::from_chars(id.data(), id.data() + id.size(), pid).ec;
  if (error != std::errc() || pid <= 0 || !is_near(id)) return false;
  return ::kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace echelon::inline base
