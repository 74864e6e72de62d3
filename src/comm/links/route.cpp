// SPDX-License-Identifier: Apache-2.0
#include "comm/links/route.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <memory>

namespace echelon::inline comm {
namespace {

std::string address_text(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  const void* bytes = address->sa_family == AF_INET
                          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
                          : &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  return inet_ntop(address->sa_family, bytes, text, sizeof text) != nullptr ? text : "";
}

// The local address of a datagram socket that is connected to `to`; connecting it sends nothing.
std::string local_address(const addrinfo& to) {
  const int file = socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (file < 0) return {};
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  const bool known = connect(file, to.ai_addr, to.ai_addrlen) == 0 &&
                     getsockname(file, reinterpret_cast<sockaddr*>(&own), &length) == 0;
  close(file);
  return known ? address_text(reinterpret_cast<const sockaddr*>(&own)) : std::string();
}

std::string interface_of(const std::string& address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next)
    if (one->ifa_addr != nullptr && (one->ifa_addr->sa_family == AF_INET || one->ifa_addr->sa_family == AF_INET6) &&
        address_text(one->ifa_addr) == address)
      return one->ifa_name;
  return {};
}

}  // namespace

std::string route_to_host(const std::string& name) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (getaddrinfo(name.c_str(), "9", &hints, &list) != 0 || list == nullptr) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, freeaddrinfo);
  const std::string address = local_address(*list), interface = interface_of(address);
  if (interface.empty()) return {};
  std::string out = interface + " " + address;
  std::ifstream speed("/sys/class/net/" + interface + "/speed");
  if (long mbit = 0; speed >> mbit && mbit > 0) out += fmt::format(", {} Mbit/s", mbit);
  return out;
}

}  // namespace echelon::inline comm
