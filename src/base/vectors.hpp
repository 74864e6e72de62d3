// SPDX-License-Identifier: Apache-2.0
// The intrinsics up to AVX2, F16C and SSE4.2 on every processor: those of the compiler where it may use AVX2, else the
// same names from SIMDe (SIMD Everywhere, Debian's libsimde-dev), which has them in NEON, SSE or plain C. Results have
// the same bits, but for _mm256_fmadd_ps: it rounds the product where kFusedMultiplyAdd is false.
#pragma once

#include "base/intrinsics.hpp"

#ifndef __AVX2__
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx2.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>
#include <simde/x86/sse4.2.h>
#endif

#include <cstdint>

namespace echelon::inline base {

// One value as an IEEE half, to nearest, ties to even, and back.
inline std::uint16_t f16_bits(float value) {
  const __m128i halves = _mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT);
  return static_cast<std::uint16_t>(_mm_extract_epi16(halves, 0));
}
inline float f16_value(std::uint16_t bits) {
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_setr_epi16(static_cast<std::int16_t>(bits), 0, 0, 0, 0, 0, 0, 0)));
}

}  // namespace echelon::inline base
