// SPDX-License-Identifier: Apache-2.0
// The checksum of HDF5's filter "fletcher32" (Fletcher 1982, over big-endian 16-bit words). It detects every flip of
// fewer than 16 bits in one word.
#pragma once

#include <cstddef>
#include <cstdint>

namespace echelon::h5 {

// Equals the library's H5_checksum_fletcher32, but vectorised. Pure.
std::uint32_t fletcher32(const std::uint8_t* data, std::size_t bytes);

}  // namespace echelon::h5
