// SPDX-License-Identifier: Apache-2.0
// Selects the samples held out for testing. They are spread evenly over the input, so that both parts of sorted input
// have every class. Sample i of n is held out if floor((i + 1) h / n) > floor(i h / n): exactly h of n.
#pragma once

#include <cstdint>

namespace echelon::inline data {

class HoldOut {
 public:
  HoldOut(std::int64_t samples, std::int64_t held) : samples_(samples), held_(held) {}
  bool operator()(std::int64_t index) const { return before(index + 1) > before(index); }

 private:
  std::int64_t before(std::int64_t index) const {
    return static_cast<std::int64_t>(static_cast<__int128>(index) * held_ / samples_);
  }
  std::int64_t samples_, held_;
};

}  // namespace echelon::inline data
