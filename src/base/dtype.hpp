// Element types. A dtype is a run-time property of tensors, arenas, plans and reductions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace echelon {

// f32 and f64 are the types that models compute in; i32 and u8 hold labels, indices and raw samples.
enum class DType : std::uint8_t { f32, f64, i32, u8 };

constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return 4;
    case DType::f64: return 8;
    case DType::i32: return 4;
    case DType::u8: return 1;
  }
  return 0;
}

constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f64: return "f64";
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

// Calls `body(T{})` with the C++ type of a floating dtype: the one place where a dtype becomes a type.
template <class Body>
decltype(auto) with_float(DType dtype, Body&& body) {
  return dtype == DType::f64 ? body(double{}) : body(float{});
}

}  // namespace echelon
