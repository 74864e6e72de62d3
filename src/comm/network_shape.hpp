// A network that messages are slowed down to (shaped.hpp), of hosts with one card each.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline comm {

struct NetworkShape {
  double bytes_per_s = 0;          // of a card, each direction
  double delay_s = 0;              // from the first byte's departure to its arrival
  double burst_bytes = 0;          // that a card that was idle lets through at once
  int ranks_per_host = 1;          // consecutive ranks, which share a card; messages between them are not slowed down
  std::vector<double> rates = {};  // bytes_per_s by host, the last for all further ones; empty: the same for all

  NetworkShape of_host(int host) const;  // with the rate of its card for all
  std::string text() const;              // "1 Gbit/s, 50 us, 2 ranks a host"; "100 Mbit/s, 4 Mbit/s by host"
};

}  // namespace echelon::inline comm
