// SPDX-License-Identifier: Apache-2.0
#include "h5/numbers.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.hpp"
#include "base/vectors.hpp"
#include "h5/handle.hpp"

namespace echelon::h5 {
namespace {

struct Half {
  std::uint16_t bits;
};

template <std::size_t kBytes>
using Bits = std::conditional_t<
    kBytes == 1, std::uint8_t,
    std::conditional_t<kBytes == 2, std::uint16_t, std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>>;

template <class T>
T swap_bytes(T bits) {
  if constexpr (sizeof bits == 2) return __builtin_bswap16(bits);
  if constexpr (sizeof bits == 4) return __builtin_bswap32(bits);
  if constexpr (sizeof bits == 8) return __builtin_bswap64(bits);
  return bits;
}

template <class To, class From>
To converted(From value) {
  if constexpr (std::is_same_v<From, Half>) {
    return static_cast<To>(f16_value(value.bits));
  } else if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
    using Wide = std::conditional_t<std::is_same_v<From, std::uint64_t>, std::uint64_t, std::int64_t>;
    constexpr auto kMost = static_cast<Wide>(std::numeric_limits<To>::max());
    constexpr auto kLeast = std::is_unsigned_v<Wide> ? Wide{0} : static_cast<Wide>(std::numeric_limits<To>::min());
    const auto wide = static_cast<Wide>(value);
    return static_cast<To>(wide > kMost ? kMost : wide < kLeast ? kLeast : wide);
  } else {
    return static_cast<To>(value);
  }
}

template <bool kSwapped, class From, class To>
void convert_all(const std::byte* src, std::int64_t n, To* dst) {
  for (std::int64_t i = 0; i < n; ++i) {
    Bits<sizeof(From)> bits;
    std::memcpy(&bits, src + i * static_cast<std::int64_t>(sizeof bits), sizeof bits);
    dst[i] = converted<To>(std::bit_cast<From>(kSwapped ? swap_bytes(bits) : bits));
  }
}

template <class To, class From>
void convert_from(const NumberType& from, const void* src, std::int64_t n, void* dst) {
  const auto convert = from.swapped ? convert_all<true, From, To> : convert_all<false, From, To>;
  convert(static_cast<const std::byte*>(src), n, static_cast<To*>(dst));
}

template <class To>
auto converter_of(const NumberType& from) {
  if constexpr (std::is_floating_point_v<To>)
    if (from.real)
      return from.bytes == 2   ? convert_from<To, Half>
             : from.bytes == 4 ? convert_from<To, float>
                               : convert_from<To, double>;
  switch (from.bytes) {
    case 1: return from.has_sign ? convert_from<To, std::int8_t> : convert_from<To, std::uint8_t>;
    case 2: return from.has_sign ? convert_from<To, std::int16_t> : convert_from<To, std::uint16_t>;
    case 4: return from.has_sign ? convert_from<To, std::int32_t> : convert_from<To, std::uint32_t>;
    default: return from.has_sign ? convert_from<To, std::int64_t> : convert_from<To, std::uint64_t>;
  }
}

// Whether the bits of a float are those of IEEE: sign, exponent and a mantissa whose first bit is implied.
bool is_ieee(hid_t type, int bytes) {
  constexpr std::array<std::array<std::size_t, 3>, 3> kLayouts = {{{5, 10, 15}, {8, 23, 127}, {11, 52, 1023}}};
  const auto [exponent, mantissa, bias] = kLayouts[bytes == 2 ? 0 : bytes == 4 ? 1 : 2];
  std::size_t sign_at = 0, exponent_at = 0, exponent_bits = 0, mantissa_at = 0, mantissa_bits = 0;
  return H5Tget_fields(type, &sign_at, &exponent_at, &exponent_bits, &mantissa_at, &mantissa_bits) >= 0 &&
         sign_at == exponent + mantissa && exponent_at == mantissa && exponent_bits == exponent && mantissa_at == 0 &&
         mantissa_bits == mantissa && H5Tget_ebias(type) == bias && H5Tget_norm(type) == H5T_NORM_IMPLIED;
}

}  // namespace

std::optional<NumberType> number_type_of(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_ENUM) return number_type_of(Handle(H5Tget_super(type), H5Tclose).id());
  if (kind != H5T_INTEGER && kind != H5T_FLOAT) return {};
  const std::size_t bytes = H5Tget_size(type);
  const bool real = kind == H5T_FLOAT;
  if (bytes > 8 || !std::has_single_bit(bytes) || (real && bytes == 1)) return {};
  if (H5Tget_precision(type) != 8 * bytes || H5Tget_offset(type) != 0) return {};
  const H5T_order_t order = H5Tget_order(type);
  if (order != H5T_ORDER_LE && order != H5T_ORDER_BE) return {};
  if (real && !is_ieee(type, static_cast<int>(bytes))) return {};
  const bool big = std::endian::native == std::endian::big;
  return NumberType{.real = real,
                    .has_sign = real || H5Tget_sign(type) == H5T_SGN_2,
                    .swapped = (order == H5T_ORDER_BE) != big,
                    .bytes = static_cast<int>(bytes)};
}

bool is_converted(const NumberType& from, DType to) {
  return to == DType::f32 || to == DType::f64 || (!from.real && (to == DType::i32 || to == DType::u8));
}

void convert_numbers(const NumberType& from, const void* src, std::int64_t n, void* dst, DType to) {
  ECHELON_CHECK(is_converted(from, to), "the library converts floats to integers");
  switch (to) {
    case DType::f32: return converter_of<float>(from)(from, src, n, dst);
    case DType::f64: return converter_of<double>(from)(from, src, n, dst);
    case DType::i32: return converter_of<std::int32_t>(from)(from, src, n, dst);
    default: return converter_of<std::uint8_t>(from)(from, src, n, dst);
  }
}

}  // namespace echelon::h5
