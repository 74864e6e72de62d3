// SPDX-License-Identifier: Apache-2.0
// exp, sigmoid and tanh of whole vectors (lanes.hpp), each with a relative error below 5e-7. NaN stays NaN.
//
// exp(x) = 2^n exp(r), |r| <= ln 2 / 2; its polynomial is that of Cephes (Moshier 1989).
#pragma once

#include <bit>
#include <cstdint>

#include "device/onednn/lanes.hpp"

namespace echelon::inline device::onednn {

template <class L>
struct VectorMath {
  using Floats = typename L::Floats;
  using Ints = typename L::Ints;

  static Floats exp(Floats x) {
    constexpr float kLog2E = 1.44269504088896341f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
    constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    x = x > 88.0f ? all(88.0f) : x;
    x = x < -87.0f ? all(-87.0f) : x;
    const Floats shifted = L::fma(x, all(kLog2E), all(kRound));
    const Floats n = shifted - kRound;
    const Floats r = L::fma(n, all(-kLn2Low), L::fma(n, all(-kLn2High), x));
    const Floats p =
        series(r, {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 0.5f});
    const Floats power = L::fma(p, r * r, r) + 1.0f;
    const Ints exponent = (reinterpret_cast<Ints>(shifted) - std::bit_cast<std::int32_t>(kRound) + 127) << 23;
    return power * reinterpret_cast<Floats>(exponent);
  }

  static Floats sigmoid(Floats x) { return 1.0f / (1.0f + exp(-x)); }

  // A quotient of polynomials, as in Eigen (Guennebaud et al.); 1 or -1 beyond kEnd, the smallest x at which the
  // quotient is rounded to 1. The roundings of products that are not fused move that x.
  static Floats tanh(Floats x) {
    constexpr float kEnd = kFusedMultiplyAdd ? 7.99881172180175781f : 7.90531110763549805f;
    x = x > kEnd ? all(kEnd) : x;
    x = x < -kEnd ? all(-kEnd) : x;
    const Floats s = x * x;
    const Floats p =
        series(s, {-2.76076847742355e-16f, 2.00018790482477e-13f, -8.60467152213735e-11f, 5.12229709037114e-08f,
                   1.48572235717979e-05f, 6.37261928875436e-04f, 4.89352455891786e-03f});
    const Floats q =
        series(s, {1.19825839466702e-06f, 1.18534705686654e-04f, 2.26843463243900e-03f, 4.89352518554385e-03f});
    return x * p / q;
  }

 private:
  // The polynomial of x with these coefficients, that of the highest power first.
  template <std::size_t kCount>
  static Floats series(Floats x, const float (&coefficients)[kCount]) {
    Floats sum = all(coefficients[0]);
#pragma GCC unroll 8
    for (std::size_t i = 1; i < kCount; ++i) sum = L::fma(sum, x, all(coefficients[i]));
    return sum;
  }
  static Floats all(float value) { return Floats{} + value; }
};

}  // namespace echelon::inline device::onednn
