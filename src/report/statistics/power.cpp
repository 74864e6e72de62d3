// SPDX-License-Identifier: Apache-2.0
#include "report/statistics/power.hpp"

#include <algorithm>
#include <cmath>

#include "report/compare/student.hpp"

namespace echelon::inline report {
namespace {

double normal_below(double z) { return std::erfc(-z / std::sqrt(2)) / 2; }

}  // namespace

// P(T > t) for T = (Z + shift) / (S / sd), where S^2 / sd^2 is chi square over its degrees of freedom f. Midpoint rule
// over s = S / sd, whose density is 2 (f/2)^(f/2) / Gamma(f/2) s^(f-1) exp(-f s^2 / 2).
double power_of(double effect, double sd, int n, double level) {
  if (!(sd > 0)) return effect > 0 ? 1 : 0;
  const double freedom = n - 1, shift = effect / sd * std::sqrt(static_cast<double>(n));
  const double critical = -student_quantile(level, freedom);
  constexpr int kSteps = 2000;
  const double width = 8 / std::sqrt(2 * freedom);
  const double from = std::max(0.0, 1 - width), to = 1 + width, step = (to - from) / kSteps;
  const double factor = std::log(2.0) + freedom / 2 * std::log(freedom / 2) - std::lgamma(freedom / 2);
  double sum = 0, whole = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double s = from + (i + 0.5) * step;
    const double density = std::exp(factor + (freedom - 1) * std::log(s) - freedom * s * s / 2) * step;
    sum += density * normal_below(shift - critical * s);
    whole += density;
  }
  return sum / whole;
}

int pairs_to_find(double effect, double sd, double level, int least) {
  if (!(effect > 0)) return kMostPairs + 1;
  if (!(sd > 0)) return least;
  const auto enough = [&](int n) { return power_of(effect, sd, n, level) >= kPower; };
  int low = std::max(2, least), high = low;
  while (high <= kMostPairs && !enough(high)) low = high + 1, high *= 2;
  if (high > kMostPairs) {
    high = kMostPairs;
    if (!enough(high)) return kMostPairs + 1;
  }
  while (low < high) {
    const int middle = (low + high) / 2;
    enough(middle) ? high = middle : low = middle + 1;
  }
  return high;
}

}  // namespace echelon::inline report
