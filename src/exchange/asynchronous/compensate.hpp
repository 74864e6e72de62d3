// Delay compensation of a stale gradient (DC-ASGD: Zheng et al., "Asynchronous Stochastic Gradient Descent with Delay
// Compensation", ICML 2017). g was computed on the weights W_pulled and is applied to W; to first order, with g g^T for
// the Hessian and its diagonal alone, the gradient at W is
//
//   g' = g + lambda g^2 (W - W_pulled)                                      products element by element
//
// lambda constant (DC-ASGD-c), or divided by a running mean square of gradients (DC-ASGD-a):
//   m = decay m + (1 - decay) g^2;   lambda_t = lambda / sqrt(m + 1e-7)
//
// What workers push may be a change of weights after a rate eta instead: u = -eta g, so that g = -u / eta, and
//   u' = -eta g' = u - (lambda / eta) u^2 (W - W_pulled)
// Under momentum or another rule u / eta stands for the gradient.
#pragma once

#include <cstddef>

#include "base/dtype.hpp"

namespace echelon::inline exchange {

struct DelayCompensation {
  double lambda = 0;  // 0: off
  double decay = 0;   // 0: lambda is constant

  bool on() const { return lambda > 0; }
  bool adapts() const { return on() && decay > 0; }
};

// Of n values of one update.
struct CompensatedUpdate {
  void* out = nullptr;           // may be `values`
  const void* values = nullptr;  // gradients, or changes of weights
  double rate = 0;               // 0: they are gradients; else changes after this rate, > 0
  const void* weights = nullptr;
  const void* pulled = nullptr;
  void* mean_square = nullptr;  // where lambda adapts
};
void compensate(DType dtype, const DelayCompensation& how, const CompensatedUpdate& update, std::size_t n);

}  // namespace echelon::inline exchange
