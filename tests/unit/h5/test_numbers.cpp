// SPDX-License-Identifier: Apache-2.0
// Numbers that are converted outside the library's lock have the values that the library gives.
#include "h5/numbers.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "h5/file.hpp"
#include "h5/handle.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

h5::Handle half(hid_t order) {
  h5::Handle type(H5Tcopy(order), H5Tclose);
  H5Tset_fields(type.id(), 15, 10, 5, 0, 10);
  H5Tset_size(type.id(), 2);
  H5Tset_ebias(type.id(), 15);
  return type;
}

// A conversion by the library, which works in place. Numbers in the other byte order are turned first: for these the
// library wraps unsigned integers that do not fit (1.10, 2.0), where it clamps those in the host's order.
std::vector<std::uint8_t> by_library(hid_t from, const std::vector<std::uint8_t>& stored, std::size_t n, DType to) {
  std::vector<std::uint8_t> buffer(stored);
  const std::size_t bytes = H5Tget_size(from);
  const h5::Handle native(H5Tcopy(from), H5Tclose);
  if (H5Tget_order(from) == H5T_ORDER_BE) {
    H5Tset_order(native.id(), H5T_ORDER_LE);
    for (std::size_t i = 0; i < n; ++i)
      std::reverse(buffer.begin() + static_cast<std::ptrdiff_t>(i * bytes),
                   buffer.begin() + static_cast<std::ptrdiff_t>((i + 1) * bytes));
  }
  buffer.resize(n * 8);
  CHECK(H5Tconvert(native.id(), h5::native_type(to), n, buffer.data(), nullptr, H5P_DEFAULT) >= 0);
  buffer.resize(n * size_of(to));
  return buffer;
}

template <class T>
bool same(const std::uint8_t* a, const std::uint8_t* b) {
  T x, y;
  std::memcpy(&x, a, sizeof x);
  std::memcpy(&y, b, sizeof y);
  return std::memcmp(a, b, sizeof x) == 0 || (std::isnan(static_cast<double>(x)) && std::isnan(static_cast<double>(y)));
}

}  // namespace

TEST_CASE("stored numbers are converted to the values that the library gives", "[h5]") {
  h5::initialise();
  h5::quiet_thread();
  const h5::Handle half_little = half(H5T_IEEE_F32LE), half_big = half(H5T_IEEE_F32BE);
  const std::vector<hid_t> types = {H5T_STD_I8LE,   H5T_STD_U8LE,   H5T_STD_I16LE,  H5T_STD_I16BE,    H5T_STD_U16LE,
                                    H5T_STD_U16BE,  H5T_STD_I32LE,  H5T_STD_I32BE,  H5T_STD_U32LE,    H5T_STD_U32BE,
                                    H5T_STD_I64LE,  H5T_STD_I64BE,  H5T_STD_U64LE,  H5T_STD_U64BE,    H5T_IEEE_F32LE,
                                    H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE, half_little.id(), half_big.id()};
  constexpr std::size_t kCount = 4099;
  for (std::size_t t = 0; t < types.size(); ++t) {
    const std::optional<h5::NumberType> number = h5::number_type_of(types[t]);
    REQUIRE(number);
    CHECK(number->bytes == static_cast<int>(H5Tget_size(types[t])));
    std::vector<std::uint8_t> stored(kCount * static_cast<std::size_t>(number->bytes));
    const auto random = test::random_integers(stored.size(), 0, 255, "stored " + std::to_string(t));
    for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<std::uint8_t>(random[i]);
    for (const DType to : {DType::f32, DType::f64, DType::i32, DType::u8}) {
      CAPTURE(t, name_of(to), number->real, number->has_sign, number->swapped, number->bytes);
      CHECK(h5::is_converted(*number, to) == (!number->real || to == DType::f32 || to == DType::f64));
      if (!h5::is_converted(*number, to)) continue;
      const std::vector<std::uint8_t> expected = by_library(types[t], stored, kCount, to);
      std::vector<std::uint8_t> found(expected.size());
      h5::convert_numbers(*number, stored.data(), kCount, found.data(), to);
      std::size_t apart = 0;
      for (std::size_t i = 0; i < kCount; ++i) {
        const std::uint8_t *a = found.data() + i * size_of(to), *b = expected.data() + i * size_of(to);
        const bool equal = to == DType::f32   ? same<float>(a, b)
                           : to == DType::f64 ? same<double>(a, b)
                                              : std::memcmp(a, b, size_of(to)) == 0;
        apart += equal ? 0 : 1;
      }
      CHECK(apart == 0);
    }
  }
}

TEST_CASE("types with padding or of another form are left to the library", "[h5]") {
  h5::initialise();
  const h5::Handle padded(H5Tcopy(H5T_STD_I32LE), H5Tclose);
  H5Tset_precision(padded.id(), 12);
  CHECK(!h5::number_type_of(padded.id()));
  CHECK(!h5::number_type_of(H5T_C_S1));
  const h5::Handle odd = half(H5T_IEEE_F32LE);
  H5Tset_ebias(odd.id(), 16);
  CHECK(!h5::number_type_of(odd.id()));
}

}  // namespace echelon
