// A network that messages are slowed down to (shaped.hpp), of hosts with one card each.
#pragma once

#include <string>

namespace echelon::inline comm {

struct NetworkShape {
  double bytes_per_s = 0;  // of a card, each direction
  double delay_s = 0;      // from the first byte's departure to its arrival
  double burst_bytes = 0;  // that a card that was idle lets through at once
  int ranks_per_host = 1;  // consecutive ranks, which share a card; messages between them are not slowed down

  std::string text() const;  // "1 Gbit/s, 50 us, 2 ranks a host"
};

}  // namespace echelon::inline comm
