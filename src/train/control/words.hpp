// SPDX-License-Identifier: Apache-2.0
// The control words of a step: what each rank contributes, and their combination over all ranks.
#pragma once

#include <cstdint>

namespace echelon::inline train {

// The times of a step on one rank.
struct RankStep {
  double compute_s =
      -1;  // forward, backward and waiting for data: what it took before the exchange; -1: it does not train
  double exposed_s = 0;   // the compute thread blocked on the exchange
  double exchange_s = 0;  // the exchange from start to finish, hidden and exposed
  double wire_bytes = 0;  // sent for it
  double rss_mb = 0;      // resident memory of the process, MiB; 0: not measured
  double throttled = 0;   // Device::throttled
};

// The words of one rank and step.
struct ControlWords {
  double loss = 0, weight = 0;  // sums over the rank's samples; a rank without samples: zeros
  double step = 0;              // updates done, this step's included
  double drift = -1;            // StepOutcome::drift of this step
  RankStep last = {};           // of the step before
  bool requeue = false, interrupt = false, checkpoint = false;
  double diverged_loss = 0;  // of this rank, if training diverges with a finite loss; 0: it does not

  int wishes() const { return (requeue ? 1 : 0) + (interrupt ? 2 : 0) + (checkpoint ? 4 : 0); }  // as ControlSum
};

// The sum over ranks. `merged` is associative; sums are taken in the order of ranks, so that all ranks hold the same
// bits.
struct ControlSum {
  double loss = 0, weight = 0;
  double fastest_s = -1, slowest_s = -1;  // RankStep::compute_s; -1: no rank measured any
  double slowest_rank = -1;
  double largest_drift = -1;    // ControlWords::drift; -1: no rank has any
  double most_steps = 0;        // ControlWords::step of the rank that has done most
  double not_finite_rank = -1;  // the lowest whose loss is not finite, or diverges; -1: none
  double not_finite_loss = 0;   // its loss
  double wishes = 0;            // bits: requeue 1, interrupt 2, checkpoint 4

  static ControlSum of(int rank, const ControlWords& words);
  // `this` is of lower ranks than `other`.
  ControlSum merged(const ControlSum& other) const;

  bool requeue() const { return (static_cast<int>(wishes) & 1) != 0; }
  bool interrupt() const { return (static_cast<int>(wishes) & 2) != 0; }
  bool checkpoint() const { return (static_cast<int>(wishes) & 4) != 0; }
  // Largest compute time less the smallest; 0 where fewer than two ranks measured theirs.
  double arrival_skew_s() const { return slowest_s - fastest_s; }
};

}  // namespace echelon::inline train
