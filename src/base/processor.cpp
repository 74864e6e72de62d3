#include "base/processor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace echelon::inline base {

std::vector<std::string> half_instructions() {
  std::vector<std::string> has;
  if (__builtin_cpu_supports("avx512bf16")) has.emplace_back("AVX512_BF16");
  if (__builtin_cpu_supports("avx512fp16")) has.emplace_back("AVX512_FP16");
  if (__builtin_cpu_supports("amx-bf16")) has.emplace_back("AMX_BF16");
  return has;
}

std::string half_instructions_text() {
  const std::vector<std::string> has = half_instructions();
  if (has.empty()) return "this processor has none of AVX512_BF16, AVX512_FP16 and AMX_BF16";
  return fmt::format("this processor has {}", fmt::join(has, ", "));
}

// Every processor with AMX_BF16 has AVX512_BF16 too, which the recurrent step's own kernel needs.
bool multiplies_bf16() { return __builtin_cpu_supports("avx512bf16"); }

}  // namespace echelon::inline base
