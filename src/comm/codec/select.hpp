// Choosing values by their size: what the sparse codecs share. Sizes are compared as integers (magnitude_bits), so that
// NaN is above inf and inf above every number.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace echelon {

inline std::uint32_t magnitude_bits(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu; }
inline constexpr std::uint32_t kInfinityBits = 0x7f800000u;

// The size of the m-th largest of n values, 1 <= m <= n.
std::uint32_t nth_magnitude(const float* values, std::int64_t n, std::int64_t m);

// Places, rising, of the values that are of at least this size; of those of this very size only the first `ties`.
void places_from(const float* values, std::int64_t n, std::uint32_t least, std::int64_t ties,
                 std::vector<std::uint32_t>& places);

// Number of values above this size.
std::int64_t count_above(const float* values, std::int64_t n, std::uint32_t size);

}  // namespace echelon
