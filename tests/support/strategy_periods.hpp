// SPDX-License-Identifier: Apache-2.0
// The keys of a strategy's table that say how often its replicas exchange and meet, for tests that run every strategy.
#pragma once

#include <string>
#include <vector>

#include "config/keys.hpp"

namespace echelon::test {

// Returns the names of these keys in [exchange.<strategy>]; none for strategies whose replicas meet otherwise.
inline std::vector<std::string> period_keys(const std::string& strategy) {
  std::vector<std::string> names;
  for (const auto& key : config_keys())
    if (key.section == "exchange." + strategy && (key.name == "period" || key.name == "consensus_every"))
      names.push_back(key.name);
  return names;
}

// Returns settings by which replicas exchange and meet every `steps` steps.
inline std::vector<std::string> meeting_every(const std::string& strategy, int steps) {
  std::vector<std::string> sets;
  for (const std::string& key : period_keys(strategy))
    sets.push_back("exchange." + strategy + "." + key + "=" + std::to_string(steps));
  return sets;
}

}  // namespace echelon::test
