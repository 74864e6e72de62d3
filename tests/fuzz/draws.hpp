// SPDX-License-Identifier: Apache-2.0
// The random choices that make one input, in order: functions of (seed, target, index) alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/hash_rng.hpp"

namespace echelon::fuzz {

class Draws {
 public:
  Draws(std::uint64_t seed, std::string_view target, std::int64_t index)
      : random_(HashRng(seed, target).at(static_cast<std::uint64_t>(index))) {}

  std::uint64_t bits() { return random_.bits(next_++); }
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_.below(next_++, bound)); }  // bound > 0
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::size_t>(high - low) + 1));
  }
  bool chance(double probability) { return random_.uniform(next_++) < probability; }
  template <class All>
  const auto& one_of(const All& all) {
    return all[below(all.size())];
  }
  std::string bytes(std::size_t count) {
    std::string all(count, '\0');
    for (char& byte : all) byte = static_cast<char>(bits());
    return all;
  }

 private:
  HashRng random_;
  std::uint64_t next_ = 0;
};

}  // namespace echelon::fuzz
