// SPDX-License-Identifier: Apache-2.0
// Ranks of an attempt wait for each other's messages: for how long, and over whose link.
#pragma once

#include <string>
#include <vector>

#include "comm/clock_offsets.hpp"
#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "comm/links/link_waits.hpp"

namespace echelon::inline run {

class LinkWaitsOfRun {
 public:
  static constexpr int kMostRanks = 256;  // beyond, nothing is collected: k x k figures, and clocks one after another

  // Counts waits from here on. Collective over the engine, blocking: where ranks are on several machines, their clocks
  // are compared here and in `collect`.
  LinkWaitsOfRun(Engine& engine, Group& world);

  // Returns the waits of `steps` steps, on rank 0. Empty elsewhere, on a single host, and with more than kMostRanks; a
  // pair of ranks between which messages were lost has no wait. Collective, while nothing else is in progress.
  LinkWaits collect(double steps);

 private:
  std::vector<ClockOffset> offsets();

  Engine& engine_;
  Group& world_;
  std::vector<PeerTime> before_;
  std::vector<ClockOffset> clocks_before_;
};

}  // namespace echelon::inline run
