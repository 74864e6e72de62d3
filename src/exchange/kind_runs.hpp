// SPDX-License-Identifier: Apache-2.0
// Splits arenas into runs of parameters of one kind. Running statistics of batch norm are not gradients: neither the
// optimiser's rules nor corrections of gradients apply to them.
#pragma once

#include <algorithm>
#include <vector>

#include "device/parameter.hpp"

namespace echelon::inline exchange {

class KindRuns {
 public:
  explicit KindRuns(const ParameterSet& parameters) {
    for (const Parameter& p : parameters.all()) {
      const bool statistic = p.kind == ParameterKind::statistic;
      if (!runs_.empty() && runs_.back().statistic == statistic && runs_.back().range.end == p.begin)
        runs_.back().range.end = p.end();
      else
        runs_.push_back({{p.begin, p.end()}, statistic});
    }
  }

  // Calls use(range, statistic) for the runs inside a range, in order.
  template <class Use>
  void each(ArenaRange of, const Use& use) const {
    for (const Run& run : runs_) {
      const ArenaRange part{std::max(of.begin, run.range.begin), std::min(of.end, run.range.end)};
      if (part.elems() > 0) use(part, run.statistic);
    }
  }

 private:
  struct Run {
    ArenaRange range;
    bool statistic = false;
  };
  std::vector<Run> runs_;
};

}  // namespace echelon::inline exchange
