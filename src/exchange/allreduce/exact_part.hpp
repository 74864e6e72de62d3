// Values of the gradient arena that a lossy codec must not touch (running statistics), exchanged apart as they are.
//
// A step: `take` each bucket (its statistics are copied out and zeroed, so that the codec encodes zeros for them);
// with the last one their sum is under way; `put` writes the sum into each bucket's result.
#pragma once

#include <memory>
#include <vector>

#include "comm/collective/algorithms.hpp"
#include "device/arenas.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

class ExactPart {
 public:
  // Without statistics, or where not `wanted`, all calls are free.
  ExactPart(const StrategyContext& context, std::string_view algorithm, AllreduceRequest request, int channel,
            bool wanted);

  void take(ArenaRange bucket);
  // Into the host's memory of the bucket, or where that is null into the arena. Says what this rank has sent for the
  // sum, once a sum.
  WireCounters put(ArenaRange bucket, void* summed);
  double formula_bytes() const { return formula_bytes_; }

 private:
  struct Piece {
    ArenaRange range;
    std::int64_t at = 0;  // in `values_`
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
  bool counted_ = true;  // what the ticket sent
  double formula_bytes_ = 0;
};

}  // namespace echelon::inline exchange
