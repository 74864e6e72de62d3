// SPDX-License-Identifier: Apache-2.0
#include "comm/codec/select.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "comm/codec/lanes.hpp"

namespace echelon::inline comm {
namespace {

constexpr int kBinShift = 20;  // exponent and three bits of mantissa: 2048 bins
constexpr std::size_t kBins = std::size_t{1} << (31 - kBinShift);
constexpr std::size_t kTables = 4;  // so that equal neighbours do not wait for each other's count

std::array<std::int64_t, kBins> histogram(const float* values, std::int64_t n) {
  std::array<std::array<std::uint32_t, kBins>, kTables> tables{};
  for (std::int64_t i = 0; i < n; ++i)
    ++tables[static_cast<std::size_t>(i) % kTables][magnitude_bits(values[i]) >> kBinShift];
  std::array<std::int64_t, kBins> sums{};
  for (const auto& table : tables)
    for (std::size_t bin = 0; bin < kBins; ++bin) sums[bin] += table[bin];
  return sums;
}

// Returns as bits the lanes whose size is at least `least`.
unsigned at_least(const float* values, std::int64_t n, std::uint32_t least) {
  const __m256i sizes = _mm256_castps_si256(magnitude(load_lanes(values, n)));
  const __m256i above = _mm256_cmpgt_epi32(sizes, _mm256_set1_epi32(static_cast<int>(least - 1)));
  return mask_of(above) & ((1u << n) - 1);
}

}  // namespace

std::uint32_t nth_magnitude(const float* values, std::int64_t n, std::int64_t m) {
  const auto counts = histogram(values, n);
  std::size_t bin = kBins - 1;
  for (; counts[bin] < m; --bin) m -= counts[bin];
  std::vector<std::uint32_t> inside;
  inside.reserve(static_cast<std::size_t>(counts[bin]));
  const auto low = static_cast<std::uint32_t>(bin << kBinShift);
  each_lanes(n, [&](std::int64_t i, std::int64_t lanes) {
    for (unsigned mask = at_least(values + i, lanes, low); mask != 0; mask &= mask - 1) {
      const std::uint32_t size = magnitude_bits(values[i + std::countr_zero(mask)]);
      if (size >> kBinShift == bin) inside.push_back(size);
    }
  });
  const auto nth = inside.begin() + (m - 1);
  std::nth_element(inside.begin(), nth, inside.end(), std::greater<>());
  return *nth;
}

void indices_from(const float* values, std::int64_t n, std::uint32_t least, std::int64_t ties,
                  std::vector<std::uint32_t>& indices) {
  indices.clear();
  std::uint32_t floor = least + (ties == 0 ? 1 : 0);
  each_lanes(n, [&](std::int64_t i, std::int64_t lanes) {
    for (unsigned mask = at_least(values + i, lanes, floor); mask != 0; mask &= mask - 1) {
      const std::int64_t index = i + std::countr_zero(mask);
      if (magnitude_bits(values[index]) == least) {
        if (ties == 0) continue;
        if (--ties == 0) floor = least + 1;
      }
      indices.push_back(static_cast<std::uint32_t>(index));
    }
  });
}

std::int64_t count_above(const float* values, std::int64_t n, std::uint32_t size) {
  std::int64_t count = 0;
  each_lanes(
      n, [&](std::int64_t i, std::int64_t lanes) { count += std::popcount(at_least(values + i, lanes, size + 1)); });
  return count;
}

}  // namespace echelon::inline comm
