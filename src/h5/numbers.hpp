// SPDX-License-Identifier: Apache-2.0
// Numbers of a file as they are stored, and their conversion outside the library's lock.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <optional>

#include "base/dtype.hpp"

namespace echelon::h5 {

// An IEEE float of 16, 32 or 64 bits, or an integer of 8, 16, 32 or 64 bits, in either byte order.
struct NumberType {
  bool real = false, has_sign = false;
  bool swapped = false;  // the byte order is not the host's
  int bytes = 0;
};

// None for types of other sizes, with padding or with another layout of bits; an enumeration counts as its integers.
std::optional<NumberType> number_type_of(hid_t type);

// Whether convert_numbers takes this pair: all but floats read as integers.
bool is_converted(const NumberType& from, DType to);

// Converts n stored numbers to f32, f64, i32 or u8 with the values that the library gives for numbers in the host's
// byte order: integers that do not fit are clamped to the nearest one, floats are rounded to the nearest f32.
void convert_numbers(const NumberType& from, const void* src, std::int64_t n, void* dst, DType to);

}  // namespace echelon::h5
