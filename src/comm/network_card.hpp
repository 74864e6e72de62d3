// SPDX-License-Identifier: Apache-2.0
// Models the cards of a slowed-down network: how much of a card a message uses, and when.
//
//   B bytes use W = B + 66 ceil(B / 1448) bytes of a card: TCP in Ethernet frames of 1500 bytes, at least one frame
//   leaves     a token bucket: full = max(full, now - burst / rate) + W / rate. The message passes from now or the old
//              `full`, whichever is later, to now or the new `full`, whichever is later. So a message occupies a busy
//              card for W / rate, and an idle card lets `burst` bytes through at once
//   arrives    `delay` later, first byte and last, and passes the card of the receiver's host by the same rule, which
//              may overlap with leaving: a lone message behind a burst takes delay + W / rate in all
//
// A message passes a card as a whole, and messages pass in the order in which they reach it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "comm/network_shape.hpp"

namespace echelon::inline comm {

// The time during which a message passes a card.
struct Passage {
  double begins_s = 0, ends_s = 0;
};

// One direction of a card. The ranks of a host share it, in memory that is initially zero. Any thread of any of them.
class CardLane {
 public:
  // Books a message whose bytes reach the card from first_s to last_s.
  Passage book(double first_s, double last_s, double busy_s, double burst_s) {
    double full_s = full_s_.load(std::memory_order_relaxed), next_s = 0;
    do next_s = std::max(full_s, first_s - burst_s) + busy_s;
    while (!full_s_.compare_exchange_weak(full_s, next_s, std::memory_order_relaxed));
    return {std::max(full_s, first_s), std::max(next_s, last_s)};
  }

 private:
  std::atomic<double> full_s_ = 0;
};
static_assert(std::atomic<double>::is_always_lock_free, "lanes are shared between processes");

struct HostCard {
  alignas(64) CardLane out, in;
};

inline double card_s(const NetworkShape& shape, std::size_t bytes) {
  constexpr std::size_t kFrame = 1448, kHeaders = 66;
  const std::size_t frames = std::max<std::size_t>(1, (bytes + kFrame - 1) / kFrame);
  return static_cast<double>(bytes + frames * kHeaders) / shape.bytes_per_s;
}

}  // namespace echelon::inline comm
