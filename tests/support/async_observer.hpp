// SPDX-License-Identifier: Apache-2.0
// Watches an asynchronous parameter server whose weights are integers, so that sums are exact, and works out by itself
// what the definitions of rules.hpp demand: it shares no code with piece.cpp. Every violation is a failed check. Any
// thread may call it.
#pragma once

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/collective/halves.hpp"
#include "exchange/asynchronous/protocol.hpp"

namespace echelon::test {

using Integers = std::vector<std::int64_t>;

class AsyncObserver {
 public:
  // `parts` is indexed by bucket and rank.
  AsyncObserver(int workers, const AsyncRules& rules, std::vector<Parts> parts);

  // Returns what worker w pushes for element i of bucket b in its t-th push; t starts at 1.
  static std::int64_t gradient(int w, std::int64_t t, int b, std::int64_t i) {
    return (w + 1) * 1000 + t * 7 + b * 3 + i;
  }

  // These calls report events at a worker.
  void pushed(int w, int b);
  void settled(int w, int b);
  void came_to_meeting(int w);
  void left_meeting(int w);
  void done(int w);
  void taken(int w, int b, int server, const AsyncHeader& header, const Integers& weights);

  // These calls report events at the server of a piece; `numbers` is the payload of the update.
  void applied(int b, int server, int w, const AsyncUpdate& update, const Integers& numbers);
  void flushed(int b, int server);
  Integers weights(int b, int server);

  // Compares what the server recorded with all that was reported. To be called when all have ended.
  void check_piece(int b, int server, const AsyncPiece& found) const;
  // Returns the number of messages that all ranks had to send.
  std::uint64_t messages() const;

  // The functions below are for use after the end.
  // Returns the versions that this worker pulled, one per push or meeting.
  const Integers& pulled(int w, int b, int server) { return piece(b, server).pulled[static_cast<std::size_t>(w)]; }
  // Returns by how many pushes any worker was ahead of the slowest when it was allowed to start its next step.
  std::int64_t lead() const { return lead_; }

 private:
  struct Applied {
    int worker;
    AsyncUpdate update;
  };
  struct Piece {
    ElemRange range;
    Integers weights, sum;                           // `sum` holds the updates that are in no version yet
    std::int64_t version = 0;                        // versions that the server's memory has made
    std::vector<Integers> snapshots;                 // the weights of each version
    std::vector<Applied> applied;                    // updates in the order in which they were applied
    std::vector<Integers> pulled;                    // versions, one list per worker
    std::map<std::int64_t, std::int64_t> closed_at;  // meeting -> version with which it ended
  };
  struct Worker {
    std::vector<std::int64_t> pushes, in_epoch;  // counts, by bucket
    std::int64_t epoch = 0, meetings = 0;
    bool met = false, done = false;
  };

  Piece& piece(int b, int server) { return pieces_.at({b, server}); }
  void new_version(Piece& piece);

  int workers_;
  AsyncRules rules_;
  std::map<std::pair<int, int>, Piece> pieces_;  // keyed by bucket and server
  std::vector<Worker> ranks_;
  std::int64_t lead_ = 0;
  std::mutex mutex_;
};

}  // namespace echelon::test
