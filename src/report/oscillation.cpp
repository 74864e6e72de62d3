// SPDX-License-Identifier: Apache-2.0
#include "report/oscillation.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace echelon::inline report {
namespace {

constexpr std::size_t kWindow = 51;

}  // namespace

double loss_oscillation(std::vector<double> losses) {
  std::erase_if(losses, [](double loss) { return !std::isfinite(loss); });
  if (losses.size() < 2 * kWindow) return std::numeric_limits<double>::quiet_NaN();
  losses.erase(losses.begin(), losses.begin() + static_cast<std::ptrdiff_t>(losses.size() / 2));
  double window = std::accumulate(losses.begin(), losses.begin() + kWindow - 1, 0.0), squares = 0;
  std::size_t count = 0;
  for (std::size_t last = kWindow - 1; last < losses.size(); ++last, ++count) {
    window += losses[last];
    const double away = losses[last - kWindow / 2] - window / static_cast<double>(kWindow);
    squares += away * away;
    window -= losses[last - kWindow + 1];
  }
  return std::sqrt(squares / static_cast<double>(count));
}

}  // namespace echelon::inline report
