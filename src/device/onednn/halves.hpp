// SPDX-License-Identifier: Apache-2.0
// Halves on the host, rounded to nearest, ties to even; NaN stays NaN. bf16 is the upper 16 bits of an f32, f16 the
// IEEE half.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "device/onednn/library.hpp"

namespace echelon::inline device::onednn {

using BHalf = std::uint16_t;
struct IeeeHalf {
  std::uint16_t bits;
};

// The types in which an op multiplies and stores, where sums are f32.
struct Precision {
  // Type of the operands of products.
  dnnl::memory::data_type type = dnnl::memory::data_type::f32;
  // Operands are rounded to halves, whatever type holds them: f32 computes the products that instructions for halves
  // would. A product of two such values is exact in f32.
  bool rounds = false;
  // Type of the activations among the op's arguments.
  dnnl::memory::data_type stored = type;
  // Which halves: bf16 or f16.
  dnnl::memory::data_type half = dnnl::memory::data_type::bf16;

  bool halves() const { return type == half; }
  bool bf16() const { return type == dnnl::memory::data_type::bf16; }
  // Whether arguments in f32 are rounded before a product.
  bool rounds_arguments() const { return halves() && !stores_halves(); }
  std::size_t bytes() const { return halves() ? sizeof(BHalf) : sizeof(float); }
  bool stores_halves() const { return stored == half; }
};
inline constexpr Precision kSingle = {};
inline constexpr Precision kEmulatedHalves = {dnnl::memory::data_type::f32, true};
inline constexpr Precision kHalves = {dnnl::memory::data_type::bf16, true};
inline constexpr Precision kEmulatedF16 = {dnnl::memory::data_type::f32, true, dnnl::memory::data_type::f32,
                                           dnnl::memory::data_type::f16};
inline constexpr Precision kF16 = {dnnl::memory::data_type::f16, true, dnnl::memory::data_type::f16,
                                   dnnl::memory::data_type::f16};
// Activations in f32 that products round to bf16: device.tf32.
inline constexpr Precision kSingleByHalves = {dnnl::memory::data_type::bf16, true, dnnl::memory::data_type::f32};

inline float widened(BHalf half) { return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16); }
// The bits of the nearest bf16 as an f32: the lower half is 0.
inline std::uint32_t rounded_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t nearest = bits + 0x7fff + (bits >> 16 & 1), quiet = bits | 0x400000;
  return ((bits & 0x7fffffff) > 0x7f800000 ? quiet : nearest) & 0xffff0000;
}
inline BHalf rounded(float value) { return static_cast<BHalf>(rounded_bits(value) >> 16); }

// The same for bodies that are written once for T = float and BHalf.
inline float widened(float value) { return value; }
template <class T>
T rounded_to(float value) {
  if constexpr (std::is_same_v<T, float>)
    return value;
  else
    return rounded(value);
}
// Returns the value or 0; by bits, because a selection between two sums is not vectorised.
template <class T>
T kept(T value, bool keep) {
  using Bits = std::conditional_t<sizeof(T) == sizeof(float), std::uint32_t, std::uint16_t>;
  const Bits mask = keep ? static_cast<Bits>(~Bits{}) : Bits{};
  return std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(value) & mask));
}

// Each converts n elements, on up to `threads` threads. `from` and `to` do not overlap or, for f32 to f32, are equal.
void widen(const BHalf* from, float* to, std::int64_t n, int threads);
void round_halves(const float* from, BHalf* to, std::int64_t n, int threads);
void widen(const IeeeHalf* from, float* to, std::int64_t n, int threads);
void round_halves(const float* from, IeeeHalf* to, std::int64_t n, int threads);
void round_in_f32(const float* from, float* to, std::int64_t n, int threads,
                  dnnl::memory::data_type half = dnnl::memory::data_type::bf16);
// Converts operands to the form that a precision requires: unchanged, rounded in f32, or bf16.
void round_operand(const Precision& precision, const float* from, void* to, std::int64_t n, int threads);
// sum = a + b; sum may be a or b
void add_halves(const BHalf* a, const BHalf* b, BHalf* sum, std::int64_t n, int threads);
void add_halves(const IeeeHalf* a, const IeeeHalf* b, IeeeHalf* sum, std::int64_t n, int threads);

}  // namespace echelon::inline device::onednn
