// SPDX-License-Identifier: Apache-2.0
// Watches decentralised exchange on virtual time and works out by itself what must hold: every message is applied once
// by every other replica, in the order of its origin; the messages sent and the residual add up to the updates. Every
// violation is a failed check.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "exchange/strom/message.hpp"
#include "tests/support/strom_world.hpp"

namespace echelon::test {

// Computes the weights after a made-up optimiser step of a replica: they move to a random target with noise, or by
// multiples of 1/64 where the schedule is dyadic.
void make_update(const StromSchedule& schedule, int rank, std::int64_t step, const StromOutcome::Bytes& weights,
                 StromOutcome::Bytes& changed);

class StromObserver {
 public:
  using Bytes = StromOutcome::Bytes;

  explicit StromObserver(const StromSchedule& schedule);

  void updated(int rank, ArenaRange range, const Bytes& changed, const Bytes& weights);
  void sent(int rank, int b, StromMessage message);
  void applied(int rank, int origin, int b, StromMessage message);
  // Asynchronous runs: came() when a rank comes to its next meeting, met() when it is told that all have met.
  void came(int rank);
  void met(int rank);
  // Synchronous runs: all messages of the next step were added.
  void ended_round(int rank, const Bytes& weights);
  void ended(int rank, const Bytes& weights, const Bytes& residual) const;

  // The messages and bytes that all ranks had to send.
  std::uint64_t messages() const { return messages_; }
  std::uint64_t bytes() const { return bytes_; }
  const std::vector<std::vector<std::vector<Bytes>>>& all_sent() const { return sent_; }

 private:
  using Counts = std::vector<std::vector<std::int64_t>>;  // by origin and bucket
  double read(const Bytes& values, std::int64_t i) const;

  const StromSchedule& schedule_;
  std::vector<ArenaRange> ranges_;
  std::vector<std::vector<std::vector<Bytes>>> sent_;  // by rank, bucket and number of the message
  std::vector<Counts> applied_;                        // one per rank
  std::vector<std::vector<double>> updates_, out_;     // by rank and element: sums of the updates, and of what was sent
  std::vector<std::vector<double>> sizes_;             // by rank and element: sums of magnitudes, for rounding
  std::vector<int> meetings_;                          // meetings that each rank came to
  std::vector<Counts> at_meeting_;                     // by meeting: messages made before it
  std::vector<Bytes> rounds_;                          // synchronous runs: weights after each step
  std::vector<std::size_t> ended_rounds_;              // one per rank
  std::uint64_t messages_ = 0, bytes_ = 0;
};

}  // namespace echelon::test
