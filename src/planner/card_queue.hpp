// Buckets on their way beside a step: which waits for which card, and when the next step's forward pass can go on.
//
// Cards are resources that serve one bucket at a time. A bucket passes its stages one after the other; a stage keeps
// its card busy for busy_s and is over latency_s later. Of those that wait, the one with the lowest priority number
// goes first and interrupts others, or, without priorities, the one that came first. A message that has left cannot be
// called back: each of the dependent messages of the one that interrupts (hops) waits for one of the other (piece_s).
#pragma once

#include <vector>

namespace echelon::inline planner {

struct Stage {
  int card = 0;
  double busy_s = 0, latency_s = 0;
  int hops = 0;        // messages in the longest chain
  double piece_s = 0;  // that its longest message keeps the card busy
};

struct CardTransfer {
  double ready_s = 0;
  int priority = 0;
  std::vector<Stage> stages;
};

// When each transfer is over. O(n^2) for n transfers.
std::vector<double> ends_of(const std::vector<CardTransfer>& transfers, bool by_priority);

// The phases of a step, and what the exchange waits for.
struct StepShape {
  double before_s = 0;  // input, other
  double forward_s = 0, backward_s = 0, optimiser_s = 0;
};

struct OverlapBucket {
  double ready = 1, needed = 0;  // workload.hpp
  double share = 1;              // of the optimiser's work
  std::vector<Stage> stages;
};

// none: exchange after back-propagation; buckets: beside it, the step waits for all; layers: the next forward waits for
// each bucket when it reads its weights. barrier: layers, where the last stage of every bucket begins once the stages
// before are over for all, and gate_s more (backup workers: the verdict).
enum class Waits : unsigned char { none, buckets, layers, barrier };

// Seconds from step to step once all are alike.
double period_s(const StepShape& shape, const std::vector<OverlapBucket>& buckets, Waits waits, bool by_priority,
                double gate_s = 0);

}  // namespace echelon::inline planner
