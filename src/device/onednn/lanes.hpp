// SPDX-License-Identifier: Apache-2.0
// A pixel's lanes as vectors, by the compiler's vector types, so that loops with selections are vectorised whatever the
// optimiser decides. Vectors are 8 floats wide (AVX2); 16 lanes are two of them, one lane is a vector of one. With
// kMost = 16 they are one AVX-512 vector, for bodies that are inlined into a function with
// __attribute__((target("avx512f"), flatten)). Without AVX2 the same bodies are compiled from loops over lanes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/intrinsics.hpp"
#include "device/onednn/halves.hpp"

#pragma GCC diagnostic ignored "-Wpsabi"  // about vectors of 64 bytes as arguments: see above

namespace echelon::inline device::onednn {

template <int kLanes, int kMost = 8>
struct Lanes {
  static constexpr int kWidth = std::min(kLanes, kMost);
  static constexpr int kVectors = kLanes / kWidth;
  typedef float Floats __attribute__((vector_size(sizeof(float) * kWidth)));
  typedef std::int32_t Ints __attribute__((vector_size(sizeof(std::int32_t) * kWidth)));
  typedef double Doubles __attribute__((vector_size(sizeof(double) * kWidth)));
  template <class T>
  struct Of {
    typedef T type __attribute__((vector_size(sizeof(T) * kWidth)));
  };

  static Floats load(const float* from) {
    Floats v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  static void store(float* to, Floats v) { std::memcpy(to, &v, sizeof v); }
  static Floats load(const BHalf* from) {
#ifdef __AVX2__
    if constexpr (kWidth == 8)
      return reinterpret_cast<Floats>(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(at(from))), 16));
    if constexpr (kWidth == 4)
      return reinterpret_cast<Floats>(_mm_slli_epi32(_mm_cvtepu16_epi32(_mm_loadl_epi64(at(from))), 16));
#endif
    if constexpr (kWidth == 1)
      return Floats{widened(*from)};
    else
      return reinterpret_cast<Floats>(load_as(from) << 16);
  }
  // The rounding of rounded_bits (halves.hpp).
  static void store(BHalf* to, Floats v) {
    const Ints bits = reinterpret_cast<Ints>(v);
    const Ints nearest = bits + 0x7fff + (bits >> 16 & 1), quiet = bits | 0x400000;
    store_as(to, (v == v ? nearest : quiet) >> 16);
  }
  // a * b + c, rounded once where that is an instruction, as it is with AVX2 and on ARM.
  template <class F = Floats>
  static F fma(F a, F b, F c) {
#ifdef __AVX2__
    if constexpr (kWidth == 16)
      return reinterpret_cast<F>(fma_512(a, b, c));
    else if constexpr (kWidth == 8)
      return reinterpret_cast<F>(_mm256_fmadd_ps(a, b, c));
    else if constexpr (kWidth == 4)
      return reinterpret_cast<F>(_mm_fmadd_ps(a, b, c));
    else
      return F{std::fma(a[0], b[0], c[0])};
#elif defined(__FP_FAST_FMAF)
    float sum[kWidth], factors[2][kWidth];
    std::memcpy(factors[0], &a, sizeof a);
    std::memcpy(factors[1], &b, sizeof b);
    std::memcpy(sum, &c, sizeof c);
    for (int i = 0; i < kWidth; ++i) sum[i] = std::fma(factors[0][i], factors[1][i], sum[i]);  // becomes vector code
    std::memcpy(&c, sum, sizeof c);
    return c;
#else
    return a * b + c;
#endif
  }
  // One conversion instruction; the compiler's __builtin_convertvector would convert the two halves separately.
  template <class F = Floats>
  static Doubles widen(const F& v) {
    static_assert(kWidth == 1 || kWidth == 4);
    const auto wide = [&](int lane) { return static_cast<double>(v[lane]); };
    if constexpr (kWidth == 1)
      return Doubles{wide(0)};
    else
      return Doubles{wide(0), wide(1), wide(2), wide(3)};
  }

  // Loads integers that are stored in memory as T.
  template <class T>
  static Ints load_as(const T* from) {
    typename Of<T>::type v;
    std::memcpy(&v, from, sizeof v);
    return __builtin_convertvector(v, Ints);
  }
  template <class T>
  static void store_as(T* to, Ints ints) {
    const auto v = __builtin_convertvector(ints, typename Of<T>::type);
    std::memcpy(to, &v, sizeof v);
  }

 private:
#ifdef __AVX2__
  __attribute__((target("avx512f"))) static __m512 fma_512(__m512 a, __m512 b, __m512 c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  static const __m128i* at(const BHalf* from) { return reinterpret_cast<const __m128i*>(from); }
#endif
};

// Calls body.operator()<kLanes>(i) over [0, n): first kMost = 16 at a time, then eight, then one by one.
template <int kMost = 8, class Body>
void over_lanes(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  if constexpr (kMost == 16)
    for (; i + 16 <= n; i += 16) body.template operator()<16>(i);
  for (; i + 8 <= n; i += 8) body.template operator()<8>(i);
  for (; i < n; ++i) body.template operator()<1>(i);
}

}  // namespace echelon::inline device::onednn
