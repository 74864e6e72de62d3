// SPDX-License-Identifier: Apache-2.0
// Exchanges the values of the gradient arena that a lossy codec must not change (running statistics) separately and
// uncoded.
//
// In a step, `take` copies the statistics of each bucket out and zeroes them, so that the codec encodes zeros. The last
// call starts their sum. `put` writes the sums to the result of each bucket.
#pragma once

#include <memory>
#include <vector>

#include "comm/collective/algorithms.hpp"
#include "device/arenas.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

class ExactPart {
 public:
  // Unless `needed`, or without statistics, all calls do nothing.
  ExactPart(const StrategyContext& context, std::string_view algorithm, AllreduceRequest request, int channel,
            bool needed);

  void take(ArenaRange bucket);
  // Blocks until the sum has arrived. Writes it to `summed`, host memory of the bucket, or to the arena if that is
  // null. Returns the traffic that this rank sent for the sum, once per sum.
  WireCounters put(ArenaRange bucket, void* summed);
  double formula_bytes() const { return formula_bytes_; }

 private:
  struct Piece {
    ArenaRange range;
    std::int64_t at = 0;  // first index in `values_`
  };
  std::byte* values_at(const Piece& piece) const;

  Arenas& arenas_;
  Engine& engine_;
  int channel_;
  std::vector<Piece> pieces_;
  std::int64_t elems_ = 0, taken_ = 0;
  Memory values_;  // on the host
  std::shared_ptr<const Plan> plan_;
  Ticket ticket_;
  bool counted_ = true;  // `put` has returned the ticket's traffic
  double formula_bytes_ = 0;
};

}  // namespace echelon::inline exchange
