#include "comm/transport.hpp"

namespace echelon::inline comm {

WireCounters& WireCounters::operator+=(const WireCounters& other) {
  messages_sent += other.messages_sent;
  bytes_sent += other.bytes_sent;
  messages_received += other.messages_received;
  bytes_received += other.bytes_received;
  library_calls += other.library_calls;
  library_bytes += other.library_bytes;
  return *this;
}

}  // namespace echelon::inline comm
