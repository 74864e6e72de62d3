#include "comm/transport.hpp"

namespace echelon {

WireCounters& WireCounters::operator+=(const WireCounters& other) {
  messages_sent += other.messages_sent;
  bytes_sent += other.bytes_sent;
  messages_received += other.messages_received;
  bytes_received += other.bytes_received;
  library_calls += other.library_calls;
  library_bytes += other.library_bytes;
  return *this;
}

WireCounters operator-(WireCounters a, const WireCounters& b) {
  a.messages_sent -= b.messages_sent;
  a.bytes_sent -= b.bytes_sent;
  a.messages_received -= b.messages_received;
  a.bytes_received -= b.bytes_received;
  a.library_calls -= b.library_calls;
  a.library_bytes -= b.library_bytes;
  return a;
}

}  // namespace echelon
