// SPDX-License-Identifier: Apache-2.0
// Common to codec `threshold` and strategy `strom`: selection by a threshold tau with error feedback, and the rule by
// which tau adapts to a density.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace echelon::inline comm {

// The selection from a range. Entries are those of indices.hpp; the extra bit is 1 for minus.
struct Selected {
  struct Exception {
    std::uint32_t index = 0;
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

// Makes one pass over `elems` values. With corrected = values + residual (null: 0), `values` becomes +tau or -tau where
// |corrected| >= tau, else 0, and `residual` becomes the rest. Where corrected is inf or NaN the residual becomes 0;
// the first such index keeps its value. Entries are appended to `into`, with indices counted from `first`. tau > 0.
void select_beyond(float tau, float* values, float* residual, std::int64_t elems, std::int64_t first, Selected& into);

// Returns the magnitude that `chosen` of the values reach; 0 where it is not finite, or where all values are zero.
float first_tau(const float* values, std::int64_t elems, std::int64_t chosen);

// Returns the tau of the next step, given that this one selected the fraction `density` of the values and `aim` is the
// target. tau is multiplied by (density / aim)^(1/50), lowered by at most a twentieth: residuals gather just below tau,
// and larger changes alternate between empty messages and bursts. Where more than twice the target was selected, tau is
// multiplied by sqrt(ratio / 2) instead, at most by 2. A tau of 0 stays 0. If nothing was selected, a tau above twice
// `largest_residual` stays too, because lowering it would still select nothing.
float adapted_tau(float tau, double density, double aim, double largest_residual);

}  // namespace echelon::inline comm
