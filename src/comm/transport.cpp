// SPDX-License-Identifier: Apache-2.0
#include "comm/transport.hpp"

#include "base/error.hpp"

namespace echelon::inline comm {

SharedChannel* Transport::shared_channel(int, int&) {
  throw EnvironmentError("transport '" + name() + "' has no memory in which ranks of one host sum");
}

std::unique_ptr<Transport> Transport::with_hosts(const std::vector<int>&) {
  throw EnvironmentError("transport '" + name() + "' has the hosts that it has");
}

WireCounters& WireCounters::operator+=(const WireCounters& other) {
  messages_sent += other.messages_sent;
  bytes_sent += other.bytes_sent;
  messages_received += other.messages_received;
  bytes_received += other.bytes_received;
  library_calls += other.library_calls;
  library_bytes += other.library_bytes;
  answered_bytes += other.answered_bytes;
  return *this;
}

}  // namespace echelon::inline comm
