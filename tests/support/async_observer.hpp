// Watches an asynchronous parameter server with integers as weights, so that sums are exact, and knows by itself what
// the definitions of rules.hpp ask for: it shares no code with piece.cpp. All violations are failed checks.
// Any thread.
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
  // `parts`: by bucket and rank.
  AsyncObserver(int workers, const AsyncRules& rules, std::vector<Parts> parts);

  // What worker w pushes for element i of bucket b as its t-th push, t from 1.
  static std::int64_t gradient(int w, std::int64_t t, int b, std::int64_t i) {
    return (w + 1) * 1000 + t * 7 + b * 3 + i;
  }

  // At a worker.
  void pushed(int w, int b);
  void settled(int w, int b);
  void came_to_meeting(int w);
  void left_meeting(int w);
  void done(int w);
  void taken(int w, int b, int server, const AsyncHeader& header, const Integers& weights);

  // At the server of a piece. `update`: the numbers that came.
  void applied(int b, int server, int w, const AsyncUpdate& update, const Integers& numbers);
  void flushed(int b, int server);
  Integers weights(int b, int server);

  // When all has ended: compares what the server wrote down with all of the above.
  void check_piece(int b, int server, const AsyncPiece& found) const;
  // Messages that all ranks had to send.
  std::uint64_t messages() const;

  // What follows is for after the end.
  // Versions that this worker pulled, one a push or meeting.
  const Integers& pulled(int w, int b, int server) { return piece(b, server).pulled[static_cast<std::size_t>(w)]; }
  // By how many pushes any worker was ahead of the slowest when it might start its next step.
  std::int64_t lead() const { return lead_; }

 private:
  struct Applied {
    int worker;
    AsyncUpdate update;
  };
  struct Piece {
    ElemRange range;
    Integers weights, sum;                           // sum: of updates that are in no version yet
    std::int64_t version = 0;                        // that the server's memory made
    std::vector<Integers> snapshots;                 // weights by version
    std::vector<Applied> applied;                    // in order
    std::vector<Integers> pulled;                    // by worker
    std::map<std::int64_t, std::int64_t> closed_at;  // version, by meeting
  };
  struct Worker {
    std::vector<std::int64_t> pushes, in_epoch;  // by bucket
    std::int64_t epoch = 0, meetings = 0;
    bool met = false, done = false;
  };

  Piece& piece(int b, int server) { return pieces_.at({b, server}); }
  void new_version(Piece& piece);

  int workers_;
  AsyncRules rules_;
  std::map<std::pair<int, int>, Piece> pieces_;  // by bucket and server
  std::vector<Worker> ranks_;
  std::int64_t lead_ = 0;
  std::mutex mutex_;
};

}  // namespace echelon::test
