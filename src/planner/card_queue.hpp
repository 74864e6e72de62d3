// SPDX-License-Identifier: Apache-2.0
// The overlap of a step with its exchange: which bucket waits for which card, and when the next forward pass can
// continue.
//
// Cards are resources that serve one bucket at a time. A bucket passes through its stages one after the other; a stage
// occupies its card for busy_s and ends latency_s later. Among the waiting buckets a card serves the one with the
// lowest priority number first, which also interrupts others; without priorities, it serves the one that came first. A
// message that has left cannot be called back: each of the dependent messages of an interrupting bucket (hops) waits
// for one message of the interrupted bucket (piece_s).
#pragma once

#include <vector>

namespace echelon::inline planner {

struct Stage {
  int card = 0;
  double busy_s = 0, latency_s = 0;
  int hops = 0;        // messages in the longest chain of dependent messages
  double piece_s = 0;  // for which its longest message occupies the card
};

struct CardTransfer {
  double ready_s = 0;
  int priority = 0;
  std::vector<Stage> stages;
};

// Returns when each transfer ends. O(n^2) for n transfers.
std::vector<double> ends_of(const std::vector<CardTransfer>& transfers, bool by_priority);

// The phases of a step that its exchange can overlap.
struct StepShape {
  double before_s = 0;  // input and other
  double forward_s = 0, backward_s = 0, optimiser_s = 0;
  double overlap = 1;  // share of the hidden part of the exchange that is hidden in fact (step_model.hpp)
};

struct OverlapBucket {
  double ready = 1, needed = 0;  // fractions of the passes, see workload.hpp
  double share = 1;              // fraction of the optimiser's work
  std::vector<Stage> stages;
};

// The point at which a step waits for its exchange. none: the exchange follows back-propagation. buckets: it overlaps
// back-propagation, and the step waits for all buckets. layers: the next forward pass waits for each bucket when it
// reads the bucket's weights. barrier: as layers, but the last stage of every bucket begins gate_s after all buckets
// have ended the stages before (the verdict of backup workers).
enum class Waits : unsigned char { none, buckets, layers, barrier };

// Seconds from step to step in the steady state.
double period_s(const StepShape& shape, const std::vector<OverlapBucket>& buckets, Waits waits, bool by_priority,
                double gate_s = 0);

}  // namespace echelon::inline planner
