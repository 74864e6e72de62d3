// SPDX-License-Identifier: Apache-2.0
// Who sent how many bytes to whom in an attempt: wire.json in its folder.
//
//   {"format": "echelon-wire", "version": 1, "steps": 120,
//    "bytes": [[0, 5e6, ..], ..],       [from][to], of all messages: gradients, evaluation, control; none of a library
//    "waited_s": [[0, 0.3, ..], ..],    [to][from], a step: the rank's engine waited for messages of that one
//    "transit_s": [[0, 0.1, ..], ..]}   [to][from], a step: those messages were on their way (comm/peer_times.hpp)
//
// The last two are there if the ranks are on several hosts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "comm/links/link_waits.hpp"

namespace echelon::inline run {

class WireMatrix {
 public:
  static constexpr int kMostRanks = 256;  // beyond, the file would be larger than what it is worth

  // Counts from here on.
  explicit WireMatrix(Engine& engine) : engine_(engine), before_(engine.transport().bytes_to_peers()) {
    engine.restart_card_rates();
  }
  CardRates card() const { return engine_.transport().card_rates(); }

  // Returns the file's text on rank 0, which took `steps` steps; "" elsewhere, for one rank, for more than kMostRanks,
  // and if the transport does not count. Collective over the world.
  std::string collect(Group& world, std::int64_t steps, const LinkWaits& waits) const;

 private:
  const Engine& engine_;
  std::vector<double> before_;
};

}  // namespace echelon::inline run
