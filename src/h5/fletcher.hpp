// The checksum of HDF5's filter "fletcher32" (Fletcher 1982, over 16-bit words, the first byte the high one). It finds
// every flip of fewer than 16 bits in one word.
#pragma once

#include <cstddef>
#include <cstdint>

namespace echelon::h5 {

// Equal to the library's H5_checksum_fletcher32; vectorised. Pure.
std::uint32_t fletcher32(const std::uint8_t* data, std::size_t bytes);

}  // namespace echelon::h5
