// SPDX-License-Identifier: Apache-2.0
// [exchange.noloco]: the keys of strategy "noloco" (exchange/gossip/noloco.cpp).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

#include "config/strategies/keys.hpp"

namespace echelon::inline config {

struct NoLoCoKeys {
  std::int64_t period = 10;
  std::int64_t group = 2;
  double outer_rate = 0.7;
  double outer_momentum = 0.5;
  double outer_pull = 0;
  std::int64_t consensus_every = 100;

  // gamma: the factor of the pull towards the mean of the group's slow weights.
  constexpr double pull() const { return outer_pull > 0 ? outer_pull : outer_rate; }

  // The bound is that of exchange/gossip/noloco.cpp.
  std::optional<std::string> unsteady(int workers) const {
    const double m = outer_momentum, below = 2 * (1 - m * m) / (1 - m + 2 * m / static_cast<double>(group));
    if (group >= workers || pull() < below) return {};
    return fmt::format(
        "exchange.noloco.outer_momentum = {} with a pull of {} in groups of {}: the weights of replicas drift apart "
        "between meetings; use an outer_pull below {:.2f}, a lower momentum or larger groups",
        m, pull(), group, below);
  }

  template <class Section>
  static void describe(Section& section) {
    section.younger();
    section.key("period", &NoLoCoKeys::period, section.range(1, 1e9),
                "number of local steps between two outer steps, each in another random group");
    section.key("group", &NoLoCoKeys::group, section.range(2, 1e6),
                "replicas of a group; the last group has those that are left over");
    section.key("outer_rate", &NoLoCoKeys::outer_rate, section.range(1e-6, 10),
                "factor on the mean change of the group's weights in an outer step");
    section.key("outer_momentum", &NoLoCoKeys::outer_momentum, section.range(0, 0.999999),
                "momentum of the outer step; pairs with 0.9 drift apart");
    section.key("outer_pull", &NoLoCoKeys::outer_pull, section.range(0, 10),
                "factor on the distance from the mean of the group's weights of the last outer step; 0: outer_rate");
    section.key("consensus_every", &NoLoCoKeys::consensus_every, section.range(1, 1e9),
                "number of steps between two meetings at which the mean of all replicas is formed by "
                "exchange.algorithm, to be tested, compared and saved; the end of an epoch is one too");
  }
};

}  // namespace echelon::inline config
