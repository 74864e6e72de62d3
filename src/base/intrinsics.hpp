// SPDX-License-Identifier: Apache-2.0
// The intrinsics of x86-64, where they exist, and what replaces them elsewhere. Only this file and vectors.hpp include
// headers of intrinsics (tests/lint/lint.sh).
//
// ECHELON_X86_BODIES is defined where functions for AVX-512 and AMX are compiled: those with a target attribute, which
// are called only where processor_has() (processor.hpp) names their instructions. Elsewhere they do not exist.
#pragma once

#ifdef __x86_64__
#include <immintrin.h>
#define ECHELON_X86_BODIES
#endif

namespace echelon::inline base {

// Whether the compiled code multiplies and adds with one rounding: with FMA on x86-64, and on ARM.
#ifdef __FP_FAST_FMAF
inline constexpr bool kFusedMultiplyAdd = true;
#else
inline constexpr bool kFusedMultiplyAdd = false;
#endif

// Lets the other thread of the core run between two looks at memory that another core will write.
inline void cpu_relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // waits tens of cycles; yield does nothing on most cores
#endif
}

}  // namespace echelon::inline base
