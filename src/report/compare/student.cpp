// SPDX-License-Identifier: Apache-2.0
#include "report/compare/student.hpp"

#include <algorithm>
#include <cmath>

namespace echelon::inline report {
namespace {

// The continued fraction of the incomplete beta function, by the modified Lentz method (Numerical Recipes, 3rd ed.,
// section 6.4). Converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kEnough = 1e-15;
  const auto safe = [](double v) { return std::fabs(v) < kTiny ? kTiny : v; };
  double c = 1, d = 1 / safe(1 - (a + b) * x / (a + 1)), h = d;
  for (int m = 1; m <= 1000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 1;
    for (const double term : {even, odd}) {
      d = 1 / safe(1 + term * d);
      c = safe(1 + term / c);
      change = c * d;
      h *= change;
    }
    if (std::fabs(change - 1) < kEnough) break;
  }
  return h;
}

// I_x(a, b), the regularised incomplete beta function.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double student_below(double t, double freedom) {
  if (std::isinf(t)) return t > 0 ? 1 : 0;
  if (freedom > 1e7) return std::erfc(-t / std::sqrt(2)) / 2;
  const double tail = incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2;
  return t > 0 ? 1 - tail : tail;
}

double student_quantile(double p, double freedom) {
  if (p > 0.5) return -student_quantile(1 - p, freedom);
  double low = -1, high = 0;
  while (student_below(low, freedom) > p) low *= 2;
  for (int i = 0; i < 200 && high - low > 1e-10 * std::fabs(low); ++i) {
    const double middle = (low + high) / 2;
    (student_below(middle, freedom) > p ? high : low) = middle;
  }
  return (low + high) / 2;
}

}  // namespace echelon::inline report
