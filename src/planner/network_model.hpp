// SPDX-License-Identifier: Apache-2.0
// The network of a prediction: a preset by name, keys that override it, or a file (description.hpp).
//
//   base              a preset, or a file of `echelon bench network --out` that ends in .json; default: 10gbit
//   gbit              bandwidth of a card that programs reach (Gbit/s, thousands)
//   latency_us        of a small message between hosts
//   inside            memory | pcie | nvlink: between ranks of one host
//   inside_gb_per_s   bandwidth of one rank in each direction (GB/s, thousands)
//   inside_latency_us
//   ranks_per_host    ranks that share a card; default 1
//   add_gb_per_s      rate at which a rank adds received values; default 10, with nvlink 500
//   hosts_per_switch  0: one switch connects all hosts
//   over_subscription bandwidth of a switch's hosts over that of its uplink, 1 to 100; default 1
//   uncertainty       of bandwidth, as a fraction; default 0.1. Latency is uncertain by a factor of two
//
// A measured network has the medians of its links (comm/links) and as many ranks per host as were measured, and links
// that are slower while all hosts send, if that was measured (comm/links/loaded_links.hpp). Its uncertainty is the
// deviation of the link between hosts that is farthest from the median, at least 0.05.
//
// Presets are rules of thumb for one stream of large messages on idle links: 94 % of Ethernet's rate, 97 % of
// InfiniBand's.
#pragma once

#include <string>
#include <vector>

#include "comm/collective/plan_time.hpp"
#include "config/schema.hpp"

namespace echelon::inline planner {

// Bandwidth between hosts while this many of them send at once, as a fraction of that of a single pair of hosts.
struct LoadedShare {
  int hosts = 2;
  double ring = 1, shuffle = 1;
};

struct NetworkModel {
  std::string name;  // "25gbit, 8 ranks a host by nvlink"
  Network network;
  int ranks_per_host = 1;
  double uncertainty = 0.1;
  std::vector<LoadedShare> loaded = {};  // by number of hosts, ascending; empty: links do not slow each other down

  // The share for an exchange among these hosts in which a host sends to one host only (`ring`), or to several: that of
  // the largest measured number of hosts that is not larger. 1 for a single host.
  double loaded_share(int hosts, bool ring) const;
  // Multiplies bandwidths by `rate` and latencies by `latency`.
  Network scaled(double rate, double latency) const;
};

std::vector<std::string> network_presets();
// Returns the argument of read_network for the network that a config emulates: "gbit=0.956,latency_us=50,..". Frames
// reduce the bandwidth as comm/network_card.hpp says. Returns "10gbit" if the config emulates none.
std::string network_of_config(const NetworkConfig& config);
// Throws ConfigError as Description does, and for an unknown preset with the nearest one; DataError as
// read_link_matrix.
NetworkModel read_network(const std::string& argument);

}  // namespace echelon::inline planner
