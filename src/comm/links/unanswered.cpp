// SPDX-License-Identifier: Apache-2.0
#include "comm/links/unanswered.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

namespace echelon::inline comm {
namespace {

namespace fs = std::filesystem;

// Returns "socket:[4711]" for each open file that is a socket.
std::set<std::string> own_sockets() {
  std::set<std::string> found;
  std::error_code error;
  for (const auto& file : fs::directory_iterator("/proc/self/fd", error)) {
    const std::string to = fs::read_symlink(file.path(), error).string();
    if (!error && to.starts_with("socket:[")) found.insert(to);
  }
  return found;
}

std::string host_text(in_addr_t address) {
  sockaddr_in to{};
  to.sin_family = AF_INET, to.sin_addr.s_addr = address;
  char number[INET_ADDRSTRLEN] = "", name[NI_MAXHOST] = "";
  inet_ntop(AF_INET, &to.sin_addr, number, sizeof number);
  const bool named =
      getnameinfo(reinterpret_cast<const sockaddr*>(&to), sizeof to, name, sizeof name, nullptr, 0, NI_NAMEREQD) == 0;
  return named ? fmt::format("{} ({})", name, number) : number;
}

}  // namespace

std::vector<std::string> unanswered_hosts() {
  constexpr const char* kAsked = "02";     // SYN_SENT
  constexpr const char* kRepeats = "01:";  // the active timer is a retransmission timer
  constexpr unsigned kMostRepeats = 2;
  const std::set<std::string> own = own_sockets();
  std::set<std::string> hosts;
  std::ifstream table("/proc/self/net/tcp");
  std::string line;
  for (std::getline(table, line); std::getline(table, line);) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, repeats, user, probes, inode;
    if (!(words >> number >> local >> remote >> state >> queues >> timer >> repeats >> user >> probes >> inode))
      continue;
    const bool repeated = timer.starts_with(kRepeats) && std::strtoul(repeats.c_str(), nullptr, 16) > kMostRepeats;
    if ((state != kAsked && !repeated) || !own.contains("socket:[" + inode + "]")) continue;
    hosts.insert(host_text(static_cast<in_addr_t>(std::strtoul(remote.c_str(), nullptr, 16))));
  }
  return {hosts.begin(), hosts.end()};
}

}  // namespace echelon::inline comm
