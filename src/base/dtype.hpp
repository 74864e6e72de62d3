// SPDX-License-Identifier: Apache-2.0
// Element types. A dtype is a run-time property of tensors, arenas, plans and reductions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace echelon::inline base {

// Models compute in f32 and f64. Activations in mixed precision are f16 (IEEE half) or bf16, while parameters and their
// gradients stay f32. i32 and u8 hold labels, indices and raw samples.
enum class DType : std::uint8_t { f32, f64, f16, bf16, i32, u8 };

constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return 4;
    case DType::f64: return 8;
    case DType::f16: return 2;
    case DType::bf16: return 2;
    case DType::i32: return 4;
    case DType::u8: return 1;
  }
  return 0;
}

constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::i32: return "i32";
    case DType::u8: return "u8";
  }
  return "?";
}

template <class T>
inline constexpr DType dtype_of = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;

constexpr bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }
// The type of parameters, their gradients and sums with activations of `dtype`: f32 for halves, else the same type.
constexpr DType wide_of(DType dtype) { return is_half(dtype) ? DType::f32 : dtype; }

[[noreturn]] void not_f32_or_f64(DType dtype);  // a failed check (exit 1)

// Calls `body(T{})` with the C++ type for f32 or f64 and returns its result; a failed check for every other dtype. The
// only place where a dtype becomes a type.
template <class Body>
decltype(auto) with_float(DType dtype, Body&& body) {
  if (dtype != DType::f32 && dtype != DType::f64) not_f32_or_f64(dtype);
  return dtype == DType::f64 ? body(double{}) : body(float{});
}

}  // namespace echelon::inline base
