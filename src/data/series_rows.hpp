// SPDX-License-Identifier: Apache-2.0
// The rows of a stream of series: each row of the global batch reads whole series, window by window, so that recurrent
// states can be kept from step to step. The longest series are dealt first, each to the row that has the fewest windows
// so far (Graham 1969, LPT: at most 4/3 of the least possible steps). How many windows rows have follows from the
// lengths alone, so every epoch has as many steps; which of equally long series a row gets, in which order it reads
// its series, and which row it is, are hashes of the epoch. A pure function of its arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/hash_rng.hpp"
#include "config/schema.hpp"
#include "data/bucket_steps.hpp"

namespace echelon::inline data {

class SeriesRows {
 public:
  // `series`: Dataset::series, of which those below window `end` are dealt. `rng`: keyed by the epoch; none: in order,
  // longest rows first. ConfigError if `wrap` leaves a row without series.
  SeriesRows(const std::vector<std::int64_t>& series, std::int64_t end, std::int64_t rows, Ragged ragged,
             const std::optional<HashRng>& rng);

  // Returns the windows of the longest row (wrap, zero_weight), or those of the shortest one (drop).
  std::int64_t steps() const { return steps_; }
  std::int64_t windows(std::int64_t row) const { return std::ssize(rows_[static_cast<std::size_t>(row)]); }
  // A row that has ended reads its series again, with full weight (wrap) or with weight 0 (zero_weight).
  SampleSlot at(std::int64_t step, std::int64_t row) const;

 private:
  std::vector<std::vector<std::int64_t>> rows_;  // [row] ids of windows
  std::int64_t steps_ = 0;
  Ragged ragged_;
};

}  // namespace echelon::inline data
