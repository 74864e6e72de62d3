// SPDX-License-Identifier: Apache-2.0
// The instruction sets of this processor by which implementations are chosen: sets that cpuid reports, the operating
// system permits and ECHELON_MAX_ISA allows. Callable from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline base {

// Whether the program is compiled for x86-64. Elsewhere a processor has none of these instructions.
#ifdef __x86_64__
inline constexpr bool kX86 = true;
#else
inline constexpr bool kX86 = false;
#endif

// Each level includes all levels before it. `name_of` gives oneDNN's names in lower case: "avx2", "avx512_core",
// "avx512_core_bf16", "avx512_core_amx".
enum class Isa { avx2, avx512, avx512_bf16, amx };
std::string_view name_of(Isa isa);

// Returns the highest level that ECHELON_MAX_ISA allows, read once per process; amx, i.e. everything, if it is not set.
// Throws EnvironmentError for another name.
Isa max_isa();
// Whether the processor has these instructions and max_isa() allows them. Every choice of an implementation asks here.
bool processor_has(Isa isa);
// "AVX2, FMA or BMI2" where the program is compiled for these and the processor lacks one of them; else empty.
std::string_view missing_instructions();
// "avx512_core_bf16", or "avx2, limited by ECHELON_MAX_ISA (the processor has avx512_core_amx)"; "NEON" on ARM.
std::string isa_text();

// Returns those of "AVX512_BF16", "AVX512_FP16", "AMX_BF16" and "AMX_FP16" that are available.
std::vector<std::string> half_instructions();
// "this processor has AVX512_BF16, AMX_BF16", or a text that it has none of them.
std::string half_instructions_text();
// Whether the processor has instructions for bf16 products.
bool multiplies_bf16();
// Whether it has matrix units for f16 products (AMX_FP16). AVX512_FP16 alone multiplies f16 no faster than f32.
bool multiplies_f16();

}  // namespace echelon::inline base
