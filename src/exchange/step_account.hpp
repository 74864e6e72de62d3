// What strategies keep count of that exchange bucket by bucket: which gradients are there, how many buckets wait for
// their weights, and what the exchange took.
#pragma once

#include "base/spans.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

// How much of a range's gradient is there.
class ReadyCount {
 public:
  ReadyCount() = default;
  explicit ReadyCount(ArenaRange range) : range_(range) {}

  void reset() { elems_ = 0; }
  // True where `done` completes the range. A gradient announced twice is a defect.
  bool add(ArenaRange done, std::int64_t step);
  bool complete() const { return elems_ == range_.elems(); }

 private:
  ArenaRange range_;
  std::int64_t elems_ = 0;
};

class StepAccount {
 public:
  explicit StepAccount(Optimiser& optimiser) : optimiser_(optimiser) {}

  // The optimiser's scalars stay those of the step before until the last of its buckets has its weights.
  void begin_step(const StepInfo& info);
  const StepInfo& info() const { return info_; }

  // A bucket's gradient is ready; and its weights are.
  void submitted() { ++in_flight_; }
  void completed();
  bool all_completed() const { return in_flight_ == 0; }

  // Of what has happened since the last `take`; strategies add what they waited and computed.
  StepOutcome& outcome() { return outcome_; }
  void note_sent(const WireCounters& sent);
  // `bucket`, for run.trace: -1 of what is none.
  void note_times(const Ticket& ticket, std::int64_t bucket = -1);
  // Both, of a ticket that is done.
  void note(const Ticket& ticket, std::int64_t bucket = -1) {
    note_sent(ticket.wire());
    note_times(ticket, bucket);
  }
  StepOutcome take();
  // What was done since, on the thread that computes, is work of the exchange and not of the optimiser, as whose it is
  // counted. Returns its seconds.
  double update_was_exchange(double begin_s) {
    const double end_s = now_s(), seconds = end_s - begin_s;
    if (SpanRecorder* recorder = open_spans())
      recorder->add({.begin_s = begin_s, .end_s = end_s, .kind = SpanKind::exchange_wait});
    outcome_.optimiser_s -= seconds;
    outcome_.exchange_wait_s += seconds;
    outcome_.exchange_busy_s += seconds;
    return seconds;
  }

  // While one stands, what is waited and computed is not the next outcome's: who drains counts that time as its own.
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

// The step of an optimiser that waits for all gradients. Every replica looks at the same sums, so all find the same
// norm and verdict without a message.
void apply_whole(Optimiser& optimiser, const Arenas& arenas, StepOutcome& outcome);

// The same where every gradient is there, whether the optimiser waits for that or not.
void apply_all(Optimiser& optimiser, const Arenas& arenas, StepOutcome& outcome);

}  // namespace echelon::inline exchange
