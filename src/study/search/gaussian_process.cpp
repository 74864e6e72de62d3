// SPDX-License-Identifier: Apache-2.0
#include "study/search/gaussian_process.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.hpp"

namespace echelon::inline study {
namespace {

constexpr double kShortest = 0.02, kLongest = 5, kLeastNoise = 1e-6, kMostNoise = 1;

}  // namespace

double GaussianProcess::kernel(const Point& a, const Point& b) const {
  double square = 0;
  for (std::size_t d = 0; d < a.size(); ++d) {
    const double apart = (a[d] - b[d]) / lengths_[d];
    square += apart * apart;
  }
  const double r = std::sqrt(5 * square);
  return signal_ * (1 + r + r * r / 3) * std::exp(-r);
}

double GaussianProcess::factor() {
  const std::size_t n = points_.size();
  lower_.assign(n * n, 0);
  double log_determinant = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = kernel(points_[i], points_[j]) + (i == j ? noise_ : 0);
      for (std::size_t k = 0; k < j; ++k) sum -= lower_[i * n + k] * lower_[j * n + k];
      if (i != j) {
        lower_[i * n + j] = sum / lower_[j * n + j];
        continue;
      }
      if (!(sum > 0)) return -std::numeric_limits<double>::infinity();
      lower_[i * n + i] = std::sqrt(sum);
      log_determinant += std::log(sum);
    }
  weights_ = values_;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) weights_[i] -= lower_[i * n + k] * weights_[k];
    weights_[i] /= lower_[i * n + i];
  }
  const double fit = std::inner_product(weights_.begin(), weights_.end(), weights_.begin(), 0.0);
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) weights_[i] -= lower_[k * n + i] * weights_[k];
    weights_[i] /= lower_[i * n + i];
  }
  double prior = 0;  // log-normal priors: lengths about 0.5, little noise
  for (const double length : lengths_) prior -= 0.5 * std::pow(std::log(length / 0.5) / 1.2, 2);
  prior -= 0.5 * std::pow(std::log(noise_ / 1e-5) / 2, 2) + 0.5 * std::pow(std::log(signal_) / 2, 2);
  return -0.5 * (fit + log_determinant) + prior;
}

// Pattern search on the logarithms of the hyperparameters, starting from those of the last fit.
void GaussianProcess::search_hyperparameters() {
  std::vector<double*> all;
  for (double& length : lengths_) all.push_back(&length);
  all.push_back(&signal_);
  all.push_back(&noise_);
  const auto limit = [&](const double* value, double proposed) {
    if (value == &noise_) return std::clamp(proposed, kLeastNoise, kMostNoise);
    if (value == &signal_) return std::clamp(proposed, 0.05, 50.0);
    return std::clamp(proposed, kShortest, kLongest);
  };
  double best = factor();
  for (double step = 1.0; step > 0.05; step /= 2) {
    bool improved = true;
    for (int round = 0; improved && round < 6; ++round) {
      improved = false;
      for (double* value : all)
        for (const double direction : {step, -step}) {
          const double before = *value;
          *value = limit(value, before * std::exp(direction));
          const double likelihood = *value == before ? best : factor();
          if (likelihood > best + 1e-6) {
            best = likelihood;
            improved = true;
            break;
          }
          *value = before;
        }
    }
  }
  factor();
}

void GaussianProcess::fit(std::vector<Point> points, const std::vector<double>& values) {
  ECHELON_CHECK(points.size() == values.size() && points.size() >= 2, "{} points, {} values", points.size(),
                values.size());
  const double n = static_cast<double>(values.size());
  centre_ = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double square = 0;
  for (const double value : values) square += (value - centre_) * (value - centre_);
  scale_ = square > 0 ? std::sqrt(square / n) : 1;
  values_.clear();
  for (const double value : values) values_.push_back((value - centre_) / scale_);
  points_ = std::move(points);
  if (lengths_.size() != points_.front().size()) lengths_.assign(points_.front().size(), 0.5);
  search_hyperparameters();
}

GaussianProcess::Prediction GaussianProcess::at(const Point& point) const {
  const std::size_t n = points_.size();
  std::vector<double> to_points(n);
  double mean = 0, explained = 0;
  for (std::size_t i = 0; i < n; ++i) {
    to_points[i] = kernel(point, points_[i]);
    mean += to_points[i] * weights_[i];
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) to_points[i] -= lower_[i * n + k] * to_points[k];
    to_points[i] /= lower_[i * n + i];
    explained += to_points[i] * to_points[i];
  }
  return {centre_ + scale_ * mean, scale_ * std::sqrt(std::max(1e-12, signal_ - explained))};
}

std::vector<double> GaussianProcess::main_effects(int samples) const {
  const std::size_t dimensions = lengths_.size();
  constexpr int kLevels = 16;
  const auto mean_at = [&](const Point& point) {
    double mean = 0;
    for (std::size_t i = 0; i < points_.size(); ++i) mean += kernel(point, points_[i]) * weights_[i];
    return mean;
  };
  const auto variance = [](const std::vector<double>& values) {
    double sum = 0, square = 0;
    for (const double v : values) sum += v, square += v * v;
    const auto n = static_cast<double>(values.size());
    return std::max(0.0, square / n - sum * sum / (n * n));
  };
  std::vector<Point> cloud;
  std::vector<double> everywhere;
  for (int s = 0; s < samples * 4; ++s) {
    cloud.push_back(random_point(dimensions, 1, static_cast<std::uint64_t>(s)));
    everywhere.push_back(mean_at(cloud.back()));
  }
  const double whole = variance(everywhere);
  std::vector<double> effects;
  for (std::size_t d = 0; d < dimensions; ++d) {
    std::vector<double> by_level;
    for (int level = 0; level < kLevels; ++level) {
      double sum = 0;
      for (int s = 0; s < samples; ++s) {
        Point point = cloud[static_cast<std::size_t>(s)];
        point[d] = (level + 0.5) / kLevels;
        sum += mean_at(point);
      }
      by_level.push_back(sum / samples);
    }
    effects.push_back(whole > 0 ? std::min(1.0, variance(by_level) / whole) : 0);
  }
  return effects;
}

}  // namespace echelon::inline study
