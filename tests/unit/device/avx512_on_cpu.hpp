// SPDX-License-Identifier: Apache-2.0
// The AVX-512 instructions of the panel kernels in plain C++, by Intel's pseudocode, so that a CPU without them can
// test the kernels. Include it after the headers of a kernel and before the kernel.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/intrinsics.hpp"

#ifndef ECHELON_X86_BODIES
#define ECHELON_X86_BODIES
using __mmask16 = std::uint16_t;
#endif

namespace echelon::test::avx512 {

// Lanes are read and written one by one, so that a masked lane touches no memory.
struct Vector {
  std::array<float, 16> lane{};
};
struct Words {
  std::array<std::uint32_t, 16> lane{};
};

template <class V>
V loaded(const void* from) {
  V v;
  std::memcpy(v.lane.data(), from, sizeof v.lane);
  return v;
}
inline Vector load_masked(unsigned mask, const float* from) {
  Vector v;
  for (unsigned i = 0; i < 16; ++i)
    if ((mask >> i & 1U) != 0) v.lane[i] = from[i];
  return v;
}
inline void store_masked(float* to, unsigned mask, const Vector& v) {
  for (unsigned i = 0; i < 16; ++i)
    if ((mask >> i & 1U) != 0) to[i] = v.lane[i];
}
template <class V, class T>
V broadcast(T value) {
  V v;
  v.lane.fill(std::bit_cast<typename decltype(v.lane)::value_type>(value));
  return v;
}
inline Vector multiplied_and_added(const Vector& a, const Vector& b, Vector sum) {
  for (std::size_t i = 0; i < 16; ++i) sum.lane[i] = std::fma(a.lane[i], b.lane[i], sum.lane[i]);
  return sum;
}
// vdpbf16ps: the product of the upper halves is added first. Both products are exact in f32.
inline Vector dot_of_halves(Vector sum, const Words& a, const Words& b) {
  const auto upper = [](std::uint32_t both) { return std::bit_cast<float>(both & 0xffff0000U); };
  const auto lower = [](std::uint32_t both) { return std::bit_cast<float>(both << 16); };
  for (std::size_t i = 0; i < 16; ++i) {
    sum.lane[i] += upper(a.lane[i]) * upper(b.lane[i]);
    sum.lane[i] += lower(a.lane[i]) * lower(b.lane[i]);
  }
  return sum;
}

}  // namespace echelon::test::avx512

// Removes the attribute that lets the compiler use the instructions themselves.
#define __attribute__(attributes)
#define __m512 ::echelon::test::avx512::Vector
#define __m512i ::echelon::test::avx512::Words
#define __m512bh ::echelon::test::avx512::Words
#define _mm512_setzero_ps() \
  ::echelon::test::avx512::Vector {}
#define _mm512_loadu_ps(from) ::echelon::test::avx512::loaded<::echelon::test::avx512::Vector>(from)
#define _mm512_loadu_si512(from) ::echelon::test::avx512::loaded<::echelon::test::avx512::Words>(from)
#define _mm512_maskz_loadu_ps(mask, from) ::echelon::test::avx512::load_masked(mask, from)
#define _mm512_mask_storeu_ps(to, mask, v) ::echelon::test::avx512::store_masked(to, mask, v)
#define _mm512_set1_ps(value) ::echelon::test::avx512::broadcast<::echelon::test::avx512::Vector>(value)
#define _mm512_set1_epi32(value) ::echelon::test::avx512::broadcast<::echelon::test::avx512::Words>(value)
#define _mm512_fmadd_ps(a, b, sum) ::echelon::test::avx512::multiplied_and_added(a, b, sum)
#define _mm512_dpbf16_ps(sum, a, b) ::echelon::test::avx512::dot_of_halves(sum, a, b)
