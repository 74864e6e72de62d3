// SPDX-License-Identifier: Apache-2.0
// Adds up what a codec did since the last outcome, over buckets and messages.
#pragma once

#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

// Totals over encoded values: bytes before and after, and sums over the values of the density and the threshold with
// which each was encoded. `seconds` is the time for encoding and for decoding messages of other ranks.
struct EncodedTotals {
  double bytes_before = 0, bytes_after = 0, values = 0, density = 0, tau = 0, seconds = 0;
};

class CodecTally {
 public:
  explicit CodecTally(std::size_t buckets) : squares_(buckets) {}

  void add(const EncodedTotals& encoded) {
    totals_.bytes_before += encoded.bytes_before;
    totals_.bytes_after += encoded.bytes_after;
    totals_.values += encoded.values;
    totals_.density += encoded.density;
    totals_.tau += encoded.tau;
    totals_.seconds += encoded.seconds;
  }
  // Sets the sum of squares of bucket b's residual, which replaces the one before.
  void set_residual(std::size_t b, double squares) { squares_[b] = squares; }

  // Returns the record since the last call; an empty one if nothing was encoded.
  CodecRecord take(bool lossy) {
    const EncodedTotals totals = std::exchange(totals_, {});
    if (totals.values == 0) return {};
    return {.bytes_before = totals.bytes_before,
            .bytes_after = totals.bytes_after,
            .lossy = lossy,
            .density = totals.density / totals.values,
            .tau = totals.tau / totals.values,
            .seconds = totals.seconds,
            .residual_norm = std::sqrt(std::accumulate(squares_.begin(), squares_.end(), 0.0))};
  }

 private:
  EncodedTotals totals_;
  std::vector<double> squares_;  // by bucket
};

}  // namespace echelon::inline exchange
