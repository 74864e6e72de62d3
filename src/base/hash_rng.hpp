// SPDX-License-Identifier: Apache-2.0
// Random numbers as hashes of their purpose, instead of generators with state.
//
// A draw is a pure function of (seed, name, step, sample, time, unit). So k replicas, any split and any device agree on
// it without a message, and a resumed run draws the same numbers as an uninterrupted one. Header-only and free of
// host-only code, because device kernels include it. The mixer is SplitMix64's finaliser (Steele, Lea, Flood 2014),
// applied once per word.
#pragma once

#include <cstdint>
#include <string_view>

namespace echelon::inline base {

#if defined(__CUDACC__)
#define ECHELON_HOST_DEVICE __host__ __device__
#else
#define ECHELON_HOST_DEVICE
#endif

ECHELON_HOST_DEVICE constexpr std::uint64_t mix64(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

ECHELON_HOST_DEVICE constexpr std::uint64_t hash_combine(std::uint64_t key, std::uint64_t word) {
  return mix64(key ^ mix64(word));
}

// FNV-1a hash of a name, mixed. Names are the keys of streams ("conv1.weight", "shuffle").
constexpr std::uint64_t hash_name(std::string_view name) {
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return mix64(h);
}

// One named stream of draws; copies are free.
class HashRng {
 public:
  constexpr HashRng(std::uint64_t seed, std::string_view name) : key_(hash_combine(mix64(seed), hash_name(name))) {}
  ECHELON_HOST_DEVICE constexpr explicit HashRng(std::uint64_t key) : key_(key) {}

  // Returns a separate stream for each value of `word`: rng.at(step).at(sample).
  ECHELON_HOST_DEVICE constexpr HashRng at(std::uint64_t word) const { return HashRng(hash_combine(key_, word)); }
  ECHELON_HOST_DEVICE constexpr std::uint64_t key() const { return key_; }

  ECHELON_HOST_DEVICE constexpr std::uint64_t bits(std::uint64_t index) const { return hash_combine(key_, index); }
  // Uniform in [0, 1), with 53 bits.
  ECHELON_HOST_DEVICE constexpr double uniform(std::uint64_t index) const {
    return static_cast<double>(bits(index) >> 11) * 0x1.0p-53;
  }
  // Uniform in [0, bound), bound > 0, by multiply-shift (bias below 2^-32 for bounds under 2^32).
  ECHELON_HOST_DEVICE constexpr std::uint64_t below(std::uint64_t index, std::uint64_t bound) const {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits(index)) * bound) >> 64);
  }

 private:
  std::uint64_t key_;
};

// Standard normal draw number `index`: sqrt(-2 ln u) cos(2 pi v) of the uniform draws 2 index and 2 index + 1
// (Box, Muller 1958). Host only: devices round log and cos differently.
double hash_normal(const HashRng& rng, std::uint64_t index);

}  // namespace echelon::inline base
