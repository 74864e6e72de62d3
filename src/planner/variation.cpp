// SPDX-License-Identifier: Apache-2.0
#include "planner/variation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.hpp"

namespace echelon::inline planner {
namespace {

constexpr std::size_t kLeastSteps = 4;
constexpr int kPoints = 64;
constexpr double kQuartile = 1.349;  // distance between the quartiles of a normal, in standard deviations

}  // namespace

double normal_quantile(double u) {
  static constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                                 1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  static constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                                 6.680131188771972e+01, -1.328068155288572e+01};
  static constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                                 -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  static constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                                 3.754408661907416e+00};
  const auto tail = [](double q) {
    return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
           ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
  };
  if (u < 0.02425) return tail(std::sqrt(-2 * std::log(u)));
  if (u > 1 - 0.02425) return -tail(std::sqrt(-2 * std::log1p(-u)));
  const double q = u - 0.5, r = q * q;
  return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
         (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

Variation Variation::lognormal(double jitter, double spread) {
  Variation variation;
  variation.jitter_ = jitter, variation.spread_ = spread;
  return variation;
}

Variation Variation::measured(std::vector<double> seconds) {
  Variation variation;
  if (seconds.size() < kLeastSteps) return variation;
  std::sort(seconds.begin(), seconds.end());
  const auto n = static_cast<double>(seconds.size());
  const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / n;
  for (double& factor : seconds) factor /= mean;
  const std::size_t tail = std::max<std::size_t>(3, seconds.size() / 10);
  const double threshold = seconds[seconds.size() - tail - 1];
  for (std::size_t i = seconds.size() - tail; i < seconds.size(); ++i)
    variation.excess_ += (seconds[i] - threshold) / static_cast<double>(tail);
  variation.sorted_ = std::move(seconds);
  variation.jitter_ = std::log(variation.measured_quantile(0.75) / variation.measured_quantile(0.25)) / kQuartile;
  return variation;
}

Variation Variation::widened(double factor) const {
  Variation other = *this;
  other.jitter_ *= factor, other.spread_ *= factor, other.widened_ *= factor;
  return other;
}

// Plotting positions are (i + 1/2) / n.
double Variation::measured_quantile(double u) const {
  const auto n = static_cast<double>(sorted_.size());
  const double at = u * n - 0.5;
  if (at <= 0) return sorted_.front();
  if (at >= n - 1) return sorted_.back() + excess_ * std::log(0.5 / (n * (1 - u)));
  const auto below = static_cast<std::size_t>(at);
  const double part = at - static_cast<double>(below);
  return sorted_[below] + part * (sorted_[below + 1] - sorted_[below]);
}

double Variation::quantile(double u, double steps) const {
  if (!sorted_.empty()) return std::max(0.0, 1 + widened_ * (measured_quantile(u) - 1) / std::sqrt(steps));
  const double sigma = std::sqrt(jitter_ * jitter_ / steps + spread_ * spread_);
  return sigma > 0 ? std::exp(sigma * normal_quantile(u) - sigma * sigma / 2) : 1;
}

double Variation::largest_quantile(double u, std::int64_t k, double steps) const {
  return quantile(std::pow(u, 1 / static_cast<double>(k)), steps);
}

double Variation::largest_of(std::int64_t k, double steps) const {
  ECHELON_CHECK(k >= 1, "{} replicas", k);
  if (k == 1 || !varies()) return 1;
  double sum = 0;
  for (int i = 0; i < kPoints; ++i) sum += largest_quantile((i + 0.5) / kPoints, k, steps);
  return sum / kPoints;
}

double Variation::in_place(std::int64_t j, std::int64_t k) const {
  ECHELON_CHECK(j >= 1 && j <= k, "position {} is not in 1 to {}", j, k);
  return k == 1 ? 1 : quantile((static_cast<double>(j) - 0.3) / (static_cast<double>(k) + 0.4));
}

}  // namespace echelon::inline planner
