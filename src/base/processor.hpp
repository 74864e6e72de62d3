// What this processor has for numbers of 16 bits, by cpuid, as far as the operating system permits its use.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline base {

// Of "AVX512_BF16", "AVX512_FP16", "AMX_BF16", those that are there.
std::vector<std::string> half_instructions();
// "this processor has AVX512_BF16, AMX_BF16", or that it has none of them.
std::string half_instructions_text();
// Whether products of bf16 are instructions here.
bool multiplies_bf16();

}  // namespace echelon::inline base
