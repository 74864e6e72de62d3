// Who sent how many bytes to whom in an attempt: wire.json in its folder.
//
//   {"format": "echelon-wire", "version": 1, "steps": 120,
//    "bytes": [[0, 5e6, ..], ..]}     [from][to], of all messages: gradients, evaluation, control; none of a library
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/engine.hpp"
#include "comm/group.hpp"

namespace echelon::inline run {

class WireMatrix {
 public:
  static constexpr int kMostRanks = 256;  // beyond, the file would be larger than what it is worth

  // Counts from here on.
  explicit WireMatrix(Engine& engine) : engine_(engine), before_(engine.transport().bytes_to_peers()) {
    engine.restart_card_rates();
  }
  CardRates card() const { return engine_.transport().card_rates(); }

  // The file's text on rank 0, which took `steps` steps; "" elsewhere, for one rank, for more than kMostRanks, and
  // where the transport does not count. Collective over the world.
  std::string collect(Group& world, std::int64_t steps) const;

 private:
  const Engine& engine_;
  std::vector<double> before_;
};

}  // namespace echelon::inline run
