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

  // The waits of `steps` steps, on rank 0; empty elsewhere, for one host, for more than kMostRanks, and of pairs of
  // which not every message that was sent was received. Collective, where nothing else is under way.
  LinkWaits collect(double steps);

 private:
  std::vector<ClockOffset> offsets();

  Engine& engine_;
  Group& world_;
  std::vector<PeerTime> before_;
  std::vector<ClockOffset> clocks_before_;
};

}  // namespace echelon::inline run
