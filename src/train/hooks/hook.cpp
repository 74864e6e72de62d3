#include "train/hooks/hook.hpp"

#include <algorithm>

namespace echelon {

double arrival_skew_s(const std::vector<RankStep>& ranks) {
  if (ranks.empty()) return 0;
  const auto [least, most] = std::minmax_element(
      ranks.begin(), ranks.end(), [](const RankStep& a, const RankStep& b) { return a.compute_s < b.compute_s; });
  return most->compute_s - least->compute_s;
}

}  // namespace echelon
