// SPDX-License-Identifier: Apache-2.0
#include "model/least_profile.hpp"

#include <algorithm>

namespace echelon::inline model {

std::vector<OpReport> least_profile(Program& program) {
  constexpr int kRuns = 3;
  std::vector<OpReport> least = (program.profile(), program.profile());
  for (int run = 1; run < kRuns; ++run) {
    const std::vector<OpReport> again = program.profile();
    for (std::size_t i = 0; i < least.size(); ++i) least[i].seconds = std::min(least[i].seconds, again[i].seconds);
  }
  return least;
}

}  // namespace echelon::inline model
