// The instructions of this processor that bodies are chosen by: what cpuid names, as far as the operating system
// permits its use and ECHELON_MAX_ISA does not withhold it. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline base {

// Each has all that stand before it. `name_of` gives oneDNN's names, in lower case: "avx2", "avx512_core",
// "avx512_core_bf16", "avx512_core_amx".
enum class Isa { avx2, avx512, avx512_bf16, amx };
std::string_view name_of(Isa isa);

// The greatest that ECHELON_MAX_ISA permits, read once a process: amx, which is all, where it is not set. Throws
// EnvironmentError for a name that is none of the above.
Isa max_isa();
// Whether the processor has these instructions and max_isa() permits them. Every choice between bodies asks here.
bool processor_has(Isa isa);
// "avx512_core_bf16", or "avx2, by ECHELON_MAX_ISA (the processor has avx512_core_amx)".
std::string isa_text();

// Of "AVX512_BF16", "AVX512_FP16", "AMX_BF16", those that are there.
std::vector<std::string> half_instructions();
// "this processor has AVX512_BF16, AMX_BF16", or that it has none of them.
std::string half_instructions_text();
// Whether products of bf16 are instructions here.
bool multiplies_bf16();

}  // namespace echelon::inline base
