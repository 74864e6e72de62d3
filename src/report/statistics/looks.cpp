// SPDX-License-Identifier: Apache-2.0
#include "report/statistics/looks.hpp"

#include <algorithm>
#include <numeric>

namespace echelon::inline report {

int least_repetitions(Tested tested) { return tested == Tested::timing ? kLeastTimings : kLeastFigures; }

double look_level(Tested tested) {
  const auto looks = std::count_if(kLooks.begin(), kLooks.end(), [&](int n) { return n >= least_repetitions(tested); });
  return kStudyError / static_cast<double>(looks);
}

std::vector<Judged> holm(const std::vector<double>& p, double error) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<Judged> out(p.size());
  bool so_far = true;
  for (std::size_t i = 0; i < order.size(); ++i) {
    Judged& judged = out[order[i]];
    judged.level = error / static_cast<double>(p.size() - i);
    so_far = so_far && p[order[i]] <= judged.level;
    judged.shown = so_far;
  }
  return out;
}

}  // namespace echelon::inline report
