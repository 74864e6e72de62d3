// SPDX-License-Identifier: Apache-2.0
#include "base/processor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <strings.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <cstdlib>

#include "base/error.hpp"
#include "base/nearest.hpp"

namespace echelon::inline base {
namespace {

constexpr const char* kVariable = "ECHELON_MAX_ISA";
constexpr Isa kAll[] = {Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx};

#ifdef __x86_64__
// avx512 means all parts of oneDNN's "core": if one is missing, the library falls back to AVX2, and so do we.
bool cpuid_has(Isa isa) {
  switch (isa) {
    case Isa::avx2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::avx512:
      return cpuid_has(Isa::avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    case Isa::avx512_bf16: return cpuid_has(Isa::avx512) && __builtin_cpu_supports("avx512bf16");
    case Isa::amx:
      return cpuid_has(Isa::avx512_bf16) && __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16");
  }
  return false;
}

bool cpuid_has_f16_vectors() { return __builtin_cpu_supports("avx512fp16"); }

// Leaf 7.1, bit 21 of EAX; the system permits it with the other matrix units.
bool cpuid_has_f16_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 21 & 1U) != 0;
}
#else
bool cpuid_has(Isa) { return false; }
bool cpuid_has_f16_vectors() { return false; }
bool cpuid_has_f16_tiles() { return false; }
#endif

Isa read_max_isa() {
  const char* requested = std::getenv(kVariable);
  if (requested == nullptr || *requested == '\0') return Isa::amx;
  std::vector<std::string> known;
  for (const Isa isa : kAll) {
    if (::strcasecmp(requested, std::string(name_of(isa)).c_str()) == 0) return isa;
    known.emplace_back(name_of(isa));
  }
  throw EnvironmentError(fmt::format("{}: {}", kVariable, unknown_name("ISA", requested, known)));
}

bool is_limited() { return max_isa() != Isa::amx; }

}  // namespace

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512_core";
    case Isa::avx512_bf16: return "avx512_core_bf16";
    case Isa::amx: return "avx512_core_amx";
  }
  return "";
}

Isa max_isa() {
  static const Isa most = read_max_isa();
  return most;
}

bool processor_has(Isa isa) { return isa <= max_isa() && cpuid_has(isa); }

std::string_view missing_instructions() {
#ifdef __AVX2__
  if (!cpuid_has(Isa::avx2) || !__builtin_cpu_supports("bmi2")) return "AVX2, FMA or BMI2";
#endif
  return {};
}

std::string isa_text() {
  std::string_view has = kX86 ? "less than avx2" : "NEON", used = has;
  for (const Isa isa : kAll) {
    if (cpuid_has(isa)) has = name_of(isa);
    if (processor_has(isa)) used = name_of(isa);
  }
  if (!is_limited()) return std::string(used);
  return fmt::format("{}, limited by {}={} (the processor has {})", used, kVariable, name_of(max_isa()), has);
}

std::vector<std::string> half_instructions() {
  std::vector<std::string> has;
  if (processor_has(Isa::avx512_bf16)) has.emplace_back("AVX512_BF16");
  if (max_isa() == Isa::amx && cpuid_has_f16_vectors()) has.emplace_back("AVX512_FP16");
  if (processor_has(Isa::amx)) has.emplace_back("AMX_BF16");
  if (multiplies_f16()) has.emplace_back("AMX_FP16");
  return has;
}

std::string half_instructions_text() {
  const std::vector<std::string> has = half_instructions();
  const std::string processor =
      is_limited() ? fmt::format("this processor, limited by {}={},", kVariable, name_of(max_isa())) : "this processor";
  if (has.empty()) return processor + " has none of AVX512_BF16, AVX512_FP16, AMX_BF16 and AMX_FP16";
  return fmt::format("{} has {}", processor, fmt::join(has, ", "));
}

// Every processor with AMX_BF16 has AVX512_BF16 too, which the recurrent step's own kernel needs.
bool multiplies_bf16() { return processor_has(Isa::avx512_bf16); }

bool multiplies_f16() { return processor_has(Isa::amx) && cpuid_has_f16_tiles(); }

}  // namespace echelon::inline base
