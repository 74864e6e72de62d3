// The network that a prediction is for: a preset by name, keys over it, or a file (description.hpp).
//
//   base              a preset, or a file of `echelon bench network --out` that ends in .json; default: 10gbit
//   gbit              of a card, what programs get of it (Gbit/s, thousands)
//   latency_us        of a small message between hosts
//   inside            memory | pcie | nvlink: between ranks of one host
//   inside_gb_per_s   of one rank, each direction (GB/s, thousands)
//   inside_latency_us
//   ranks_per_host    ranks that share a card; default 1
//   add_gb_per_s      at which a rank adds what it received; default 10, with nvlink 500
//   hosts_per_switch  0: one switch for all
//   over_subscription bandwidth of a switch's hosts over that of its uplink, 1 to 100; default 1
//   uncertainty       of bandwidth, as a fraction; default 0.1. Latency is taken to be known to half of it or double
//
// Of a measured network: the medians of its links (comm/links), as many ranks a host as measured, and as uncertainty
// the distance of the link between hosts that is farthest from the median, at least 0.05.
//
// Presets are what large messages of one stream reach on idle links, by rule of thumb: 94 % of Ethernet's rate, 97 % of
// InfiniBand's.
#pragma once

#include <string>
#include <vector>

#include "comm/collective/plan_time.hpp"
#include "config/schema.hpp"

namespace echelon::inline planner {

struct NetworkModel {
  std::string name;  // "25gbit, 8 ranks a host by nvlink"
  Network network;
  int ranks_per_host = 1;
  double uncertainty = 0.1;

  // Bandwidths times `rate`, latencies times `latency`.
  Network scaled(double rate, double latency) const;
};

std::vector<std::string> network_presets();
// What read_network takes for the network that a config slows messages down to: "gbit=0.956,latency_us=50,..", of which
// frames leave what comm/network_card.hpp says; "10gbit" where it slows nothing down.
std::string network_of_config(const NetworkConfig& config);
// ConfigError as Description, and for an unknown preset with the nearest one; DataError as read_link_matrix.
NetworkModel read_network(const std::string& argument);

}  // namespace echelon::inline planner
