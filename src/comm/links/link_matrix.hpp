// SPDX-License-Identifier: Apache-2.0
// Latency and bandwidth between all pairs of ranks, and the file that holds them:
//
//   {"format": "echelon-network", "version": 1,
//    "date": "2026-01-31T12:00:00Z", "transport": "mpi (Open MPI 4.1.4)",
//    "host_names": ["n1", "n2"],                  one per host
//    "interfaces": ["eth0 10.0.0.1 ..", ..],      one per host: the one that it sends to other hosts by; "": not known
//    "hosts": [0, 0, 1, 1],                       by rank: index of its host
//    "latency_s":   [[null, 3e-07, ..], ..],      [from][to], s: half a round trip of 8 bytes; null: not measured
//    "bytes_per_s": [[null, 5e+09, ..], ..],      [from][to], bytes/s in this direction; 0: blocked
//    "loaded": [{"hosts": 2, "ring_bytes_per_s": 4e+09, "shuffle_bytes_per_s": 3e+09}, ..]}   loaded_links.hpp
//
// The diagonals are null. Links between hosts are measured between their first ranks and hold for all their ranks.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "comm/collective/plan_time.hpp"
#include "comm/links/loaded_links.hpp"

namespace echelon::inline comm {

struct LinkMatrix {
  std::string date, transport;
  std::vector<std::string> host_names, interfaces;
  std::vector<int> hosts;
  std::vector<double> latency_s, bytes_per_s;  // [from * ranks + to]; NaN: not measured; bytes_per_s 0: blocked

  std::vector<LoadedLinks> loaded;  // by number of hosts, ascending; empty: not measured

  // A matrix without measurements.
  static LinkMatrix of(const std::vector<std::string>& host_names, const std::vector<int>& hosts);
  std::size_t ranks() const { return hosts.size(); }
  std::size_t at(int from, int to) const {
    return static_cast<std::size_t>(from) * ranks() + static_cast<std::size_t>(to);
  }
  bool blocked(int from, int to) const { return bytes_per_s[at(from, to)] == 0; }
  // The first rank of each host.
  std::vector<int> leaders() const;
  // Copies the measurements between the leaders of two hosts to all pairs of their ranks.
  void spread_between_hosts();
};

// The parameters for pricing plans: the medians of the links inside hosts and of those between hosts that are not
// blocked; a kind without such a link gets the numbers of the other, and add_bytes_per_s keeps its default.
Network network_of(const LinkMatrix& links);

std::string link_matrix_json(const LinkMatrix& links);
// DataError if the file does not have this format or its sizes are inconsistent, EnvironmentError if it cannot be
// read.
LinkMatrix read_link_matrix(const std::string& path);

}  // namespace echelon::inline comm
