// SPDX-License-Identifier: Apache-2.0
// Records when messages are sent and received, per peer: it tells a slow link from a peer with nothing to send yet.
//
//   transit   of a message: from the start of its send to the end of its receive. Its sum over the messages between two
//             ranks is the receiver's sum of ends minus the sender's sum of starts, so that no message carries a time
//   wait      of a message: from the start of its receive or the end of the previous receive of any peer, whichever is
//             later, to its own end. Waits do not overlap; each is assigned to the message that ended it
//
// A starved peer makes its receivers wait for messages of short transit; a late receiver takes messages of long transit
// without a wait. Behind a slow link both are long.
//
// Only the thread that drives an engine writes; any thread reads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace echelon::inline comm {

// Sums over the messages to and from one peer; times are of the transport's clock.
struct PeerTime {
  double sent = 0, sent_at_s = 0;                              // messages; sum of the starts of their sends
  double received = 0, received_at_s = 0, received_bytes = 0;  // messages; sum of the ends of their receives; bytes
  double waited_s = 0;
};

class PeerTimes {
 public:
  explicit PeerTimes(int peers) : sums_(static_cast<std::size_t>(peers)) {}

  void sent(int peer, double at_s) {
    Sums& sums = at(peer);
    add(sums.sent, 1);
    add(sums.sent_at_s, at_s);
  }
  void received(int peer, std::size_t bytes, double posted_s, double at_s) {
    Sums& sums = at(peer);
    add(sums.received, 1);
    add(sums.received_at_s, at_s);
    add(sums.received_bytes, static_cast<double>(bytes));
    add(sums.waited_s, std::max(0.0, at_s - std::max(posted_s, newest_s_)));
    newest_s_ = at_s;
  }

  std::vector<PeerTime> read() const {
    std::vector<PeerTime> all;
    for (const Sums& of : sums_)
      all.push_back({.sent = of.sent.load(kRelaxed),
                     .sent_at_s = of.sent_at_s.load(kRelaxed),
                     .received = of.received.load(kRelaxed),
                     .received_at_s = of.received_at_s.load(kRelaxed),
                     .received_bytes = of.received_bytes.load(kRelaxed),
                     .waited_s = of.waited_s.load(kRelaxed)});
    return all;
  }

 private:
  static constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
  using Sum = std::atomic<double>;
  struct Sums {
    Sum sent = 0, sent_at_s = 0, received = 0, received_at_s = 0, received_bytes = 0, waited_s = 0;
  };
  static void add(Sum& sum, double more) { sum.store(sum.load(kRelaxed) + more, kRelaxed); }
  Sums& at(int peer) { return sums_[static_cast<std::size_t>(peer)]; }

  std::vector<Sums> sums_;
  double newest_s_ = 0;  // end of the newest receive; used by the thread that writes
};

// The object that counts the messages of the thread that drives.
struct PeerTimesPlace {
  PeerTimes* times = nullptr;  // null: nothing is counted, and no clock is read
  const int* world = nullptr;  // ranks of `times` by rank of the group that is driven; null: they are equal

  // Negative in a group that is being made, whose ranks are not known yet.
  int in_world(int peer) const { return world != nullptr ? world[peer] : peer; }
  void sent(int peer, double at_s) const {
    if (times != nullptr && in_world(peer) >= 0) times->sent(in_world(peer), at_s);
  }
  void received(int peer, std::size_t bytes, double posted_s, double at_s) const {
    if (times != nullptr && in_world(peer) >= 0) times->received(in_world(peer), bytes, posted_s, at_s);
  }
};
inline constinit thread_local PeerTimesPlace peer_times_place;

// Messages of this thread are counted in `times` during the lifetime of this object, and nowhere afterwards.
class PlacedPeerTimes {
 public:
  explicit PlacedPeerTimes(PeerTimes& times) { peer_times_place = {.times = &times}; }
  ~PlacedPeerTimes() { peer_times_place = {}; }
  PlacedPeerTimes(const PlacedPeerTimes&) = delete;
};

}  // namespace echelon::inline comm
