#include "exchange/asynchronous/compensate.hpp"

#include <cmath>

namespace echelon::inline exchange {
namespace {

constexpr double kEpsilon = 1e-7;

template <class T, bool adapts>
void run(const DelayCompensation& how, const CompensatedUpdate& update, std::size_t n) {
  const T to_gradient = static_cast<T>(update.rate > 0 ? -1 / update.rate : 1);
  const T from_gradient = static_cast<T>(update.rate > 0 ? -update.rate : 1);
  const T lambda = static_cast<T>(how.lambda), decay = static_cast<T>(how.decay);
  const auto *values = static_cast<const T*>(update.values), *weights = static_cast<const T*>(update.weights),
             *pulled = static_cast<const T*>(update.pulled);
  T *out = static_cast<T*>(update.out), *mean_square = static_cast<T*>(update.mean_square);
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) {
    const T gradient = to_gradient * values[i], square = gradient * gradient;
    T factor = lambda;
    if constexpr (adapts) {
      mean_square[i] = decay * mean_square[i] + (1 - decay) * square;
      factor /= std::sqrt(mean_square[i] + static_cast<T>(kEpsilon));
    }
    out[i] = values[i] + from_gradient * (factor * square * (weights[i] - pulled[i]));
  }
}

}  // namespace

void compensate(DType dtype, const DelayCompensation& how, const CompensatedUpdate& update, std::size_t n) {
  with_float(dtype, [&]<class T>(T) { how.adapts() ? run<T, true>(how, update, n) : run<T, false>(how, update, n); });
}

}  // namespace echelon::inline exchange
