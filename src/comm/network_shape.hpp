// SPDX-License-Identifier: Apache-2.0
// The network that messages are slowed down to (shaped.hpp): hosts with one card each.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline comm {

struct NetworkShape {
  double bytes_per_s = 0;          // rate of a card, each direction
  double delay_s = 0;              // from the departure of the first byte to its arrival
  double burst_bytes = 0;          // bytes that an idle card lets through at once
  int ranks_per_host = 1;          // consecutive ranks share a card; messages between them are not slowed down
  std::vector<double> rates = {};  // bytes_per_s by host, the last for all further hosts; empty: equal

  NetworkShape of_host(int host) const;  // the shape with the rate of this host's card for all
  std::string text() const;              // "1 Gbit/s, 50 us, 2 ranks a host"; "100 Mbit/s, 4 Mbit/s by host"
};

}  // namespace echelon::inline comm
