// Selection by a threshold tau with error feedback, and how tau adapts to a density: what codec `threshold` and
// strategy `strom` share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace echelon::inline comm {

// What was selected of a range: entries as indices.hpp writes them, the extra bit 1 for minus.
struct Selected {
  struct Exception {
    std::uint32_t place = 0;
    float value = 0;
  };
  std::vector<std::uint32_t> entries;  // work space; the first `count` are selected
  std::size_t count = 0;
  std::optional<Exception> exception;  // the first value that is inf or NaN

  std::span<const std::uint32_t> all() const { return {entries.data(), count}; }
  void clear() {
    count = 0;
    exception.reset();
  }
};

// One pass over `elems` values: wanted = values + residual (null: 0) becomes +tau or -tau in `values` where |wanted| >=
// tau, else 0, and `residual` the rest. Where wanted is inf or NaN the residual becomes 0; the first such place keeps
// the value. Entries are appended to `into`, their indices counted from `first`. tau > 0.
void select_beyond(float tau, float* values, float* residual, std::int64_t elems, std::int64_t first, Selected& into);

// The size that `chosen` of the values reach; 0 where it is not finite, or where all are zeros.
float first_tau(const float* values, std::int64_t elems, std::int64_t chosen);

// The tau of the next step, where this one selected the fraction `density` of the values and the target is `aim`: moved
// by the ratio of densities to the power 1/50, down by a twentieth at most, because residuals gather just below tau and
// larger changes alternate between no messages and bursts; where more than twice the target was selected it rises by
// the root of half the ratio, at most to the double. 0 stays 0, and so does a tau above twice `largest_residual` where
// nothing was selected: a smaller one would select nothing soon.
float adapted_tau(float tau, double density, double aim, double largest_residual);

}  // namespace echelon::inline comm
