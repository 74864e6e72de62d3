// SPDX-License-Identifier: Apache-2.0
// The bookkeeping of strategies that exchange bucket by bucket: which gradients are ready, how many buckets wait for
// their weights, and the time that the exchange took.
#pragma once

#include "base/spans.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

// Counts the elements of a range whose gradients are ready.
class ReadyCount {
 public:
  ReadyCount() = default;
  explicit ReadyCount(ArenaRange range) : range_(range) {}

  void reset() { elems_ = 0; }
  // Returns true if `done` completes the range. A check fails if a gradient is announced twice.
  bool add(ArenaRange done, std::int64_t step);
  bool complete() const { return elems_ == range_.elems(); }

 private:
  ArenaRange range_;
  std::int64_t elems_ = 0;
};

class StepAccount {
 public:
  explicit StepAccount(Optimiser& optimiser) : optimiser_(optimiser) {}

  // The optimiser's step begins only when no bucket is in flight: until then its scalars are those of the step before.
  void begin_step(const StepInfo& info);
  const StepInfo& info() const { return info_; }

  // A bucket's gradient is ready (submitted), or its weights are (completed).
  void submitted() { ++in_flight_; }
  void completed();
  bool all_completed() const { return in_flight_ == 0; }

  // The outcome since the last `take`, to which strategies add their times.
  StepOutcome& outcome() { return outcome_; }
  void note_sent(const WireCounters& sent);
  // `bucket` is its index for run.trace; -1: the ticket is not of a bucket.
  void note_times(const Ticket& ticket, std::int64_t bucket = -1);
  // Calls both for a ticket that is done.
  void note(const Ticket& ticket, std::int64_t bucket = -1) {
    note_sent(ticket.wire());
    note_times(ticket, bucket);
  }
  StepOutcome take();
  // Moves the compute thread's time since `begin_s` from the optimiser, which has counted it, to the exchange. Returns
  // its seconds.
  double update_was_exchange(double begin_s) {
    const double end_s = now_s(), seconds = end_s - begin_s;
    if (SpanRecorder* recorder = open_spans())
      recorder->add({.begin_s = begin_s, .end_s = end_s, .kind = SpanKind::exchange_wait});
    outcome_.optimiser_s -= seconds;
    outcome_.exchange_wait_s += seconds;
    outcome_.exchange_busy_s += seconds;
    return seconds;
  }

  // Keeps the waiting and optimiser times of its lifetime out of the next outcome: the caller of drain counts them.
  class ExcludedTime {
   public:
    explicit ExcludedTime(StepAccount& account) : account_(account), before_(account.outcome_) {}
    ~ExcludedTime() {
      account_.outcome_.exchange_wait_s = before_.exchange_wait_s;
      account_.outcome_.optimiser_s = before_.optimiser_s;
    }
    ExcludedTime(const ExcludedTime&) = delete;

   private:
    StepAccount& account_;
    const StepOutcome before_;
  };

  const WireCounters& wire() const { return wire_; }  // over all steps

 private:
  void begin_updates();

  Optimiser& optimiser_;
  StepInfo info_;
  int in_flight_ = 0;
  bool updates_begun_ = false;
  StepOutcome outcome_;
  double first_start_s_ = 0, last_finish_s_ = 0;
  WireCounters wire_;
};

// Takes the step of an optimiser that waits for all gradients. Every replica has the same sums, so that all get the
// same norm and verdict without a message.
void apply_whole(Optimiser& optimiser, const Arenas& arenas, StepOutcome& outcome);

// Takes the step when all gradients are ready, whether the optimiser waits for them or not.
void apply_all(Optimiser& optimiser, const Arenas& arenas, StepOutcome& outcome);

}  // namespace echelon::inline exchange
