// SPDX-License-Identifier: Apache-2.0
// A Gaussian process over the unit cube: the surrogate model of Bayesian search (Rasmussen and Williams: Gaussian
// Processes for Machine Learning, 2006, chapters 2 and 5).
//
// Kernel: Matern 5/2 with one length scale per dimension, k(r) = s^2 (1 + sqrt5 r + 5/3 r^2) exp(-sqrt5 r), plus noise
// on the diagonal. Values are standardised. Lengths, noise and s^2 maximise the marginal likelihood over a seeded
// pattern search, with weak priors that keep lengths between 0.02 and 5.
#pragma once

#include <vector>

#include "study/search/range.hpp"

namespace echelon::inline study {

class GaussianProcess {
 public:
  struct Prediction {
    double mean = 0, deviation = 0;
  };

  // Takes at least two points with finite values. O(n^3) for each of the hundreds of hyperparameter sets that it tries.
  void fit(std::vector<Point> points, const std::vector<double>& values);
  Prediction at(const Point& point) const;  // O(n^2)
  // The share of the variance of the mean over the cube that each dimension explains by itself (its main effect).
  // Estimated from `samples` points per dimension.
  std::vector<double> main_effects(int samples = 64) const;
  const std::vector<double>& lengths() const { return lengths_; }

 private:
  double kernel(const Point& a, const Point& b) const;
  // Factorises the kernel matrix. Returns its log marginal likelihood with priors; -infinity if not positive definite.
  double factor();
  void search_hyperparameters();

  std::vector<Point> points_;
  std::vector<double> values_;  // standardised
  double centre_ = 0, scale_ = 1;
  std::vector<double> lengths_;
  double signal_ = 1, noise_ = 1e-4;  // variances
  std::vector<double> lower_;         // Cholesky factor, n x n, row-major
  std::vector<double> weights_;       // K^-1 values
};

}  // namespace echelon::inline study
