// SPDX-License-Identifier: Apache-2.0
// Counts the sends in flight over all plans and machines of an engine, and decides whether another one may start. A
// message that has started cannot be overtaken: one with a lower `priority` number waits behind all that are on their
// way to the card.
//
//   at most `messages` in flight (EngineOptions::sends)
//   and no more bytes than the card sends in kAhead_s, except for a first message and for short ones
//
// The rate of the card is measured: bytes of sends that ended, over the time in which long sends were in flight,
// because short ones measure latency. It rises at once and falls by a quarter of the difference at a time, because a
// send may be waiting for its receiver, and never below 5 MB/s. A wait that ends with a send beyond the budget does not
// count: otherwise ranks that wait for each other would measure their patience and increase it. An unknown rate is no
// limit.
//
// Sends that end in a pass make room from the next pass on, in which the most urgent plan comes first. One send beyond
// the budget is permitted if nothing moved for longer than the card needs for the bytes in flight; otherwise ranks that
// submit in different orders could wait for each other for ever.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

namespace echelon::inline comm {

class SendBudget {
 public:
  SendBudget() = default;  // no limit
  // `short_bytes`: the longest message that counts as short.
  explicit SendBudget(int messages, double short_bytes = kShort)
      : messages_(std::max(1, messages)), short_bytes_(short_bytes) {}

  static constexpr double kShort = 16 << 10;

  // Takes effect at once. Nothing may be in flight.
  void limit(int messages) { messages_ = std::max(1, messages); }

  bool allows(std::size_t bytes) const { return extra_ || (held_ < messages_ && fits(static_cast<double>(bytes))); }
  void began(std::size_t bytes, double now_s) {
    const bool beyond = held_ >= messages_ || !fits(static_cast<double>(bytes));
    if (beyond) extra_ = false;
    if (beyond || long_ == 0) busy_since_s_ = now_s;
    ++under_way_, ++held_, long_ += is_long(bytes);
    bytes_ += static_cast<double>(bytes), held_bytes_ += static_cast<double>(bytes);
  }
  void ended(std::size_t bytes, double now_s) {
    const bool measured = long_ > 0;
    forget(bytes);
    if (!measured) return;
    busy_s_ += now_s - busy_since_s_;
    busy_since_s_ = now_s;
    ended_bytes_ += static_cast<double>(bytes);
    if (busy_s_ < kMeasured_s) return;
    const double rate = std::max(ended_bytes_ / busy_s_, short_bytes_ / kSlowest_s);
    rate_ = rate_ == kUnknown || rate > rate_ ? rate : 0.75 * rate_ + 0.25 * rate;
    busy_s_ = ended_bytes_ = 0;
  }
  // Called for a send that was cancelled.
  void forget(std::size_t bytes) {
    --under_way_, long_ -= is_long(bytes), bytes_ -= static_cast<double>(bytes);
    if (!in_passes_) held_ = under_way_, held_bytes_ = bytes_;
  }

  // From the first call on, ended sends make room only at these calls.
  void begin_pass() {
    in_passes_ = true;
    held_ = under_way_, held_bytes_ = bytes_;
  }
  // `idle_s`: how long nothing has moved; 0: something did.
  void idle(double idle_s) { extra_ = idle_s > patience_s(); }
  // Seconds without progress after which one more send may start.
  double patience_s() const { return kLetThrough_s + std::min(kLongest_s, 2 * bytes_ / rate_); }

  bool used_up() const { return held_ >= messages_; }
  double bytes_per_s() const { return rate_; }  // infinity: not known

 private:
  static constexpr double kAhead_s = 2e-3, kMeasured_s = 5e-3;
  static constexpr double kLetThrough_s = 20e-6, kLongest_s = 0.05;
  static constexpr double kSlowest_s = kShort / 5e6;  // duration of a short message on the slowest card
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();

  bool is_long(std::size_t bytes) const { return static_cast<double>(bytes) > short_bytes_; }
  bool fits(double bytes) const {
    return held_ == 0 || bytes <= short_bytes_ || held_bytes_ + bytes <= rate_ * kAhead_s;
  }

  int messages_ = std::numeric_limits<int>::max();
  double short_bytes_ = kShort;
  int under_way_ = 0, long_ = 0, held_ = 0;  // held: includes those that ended in this pass
  double bytes_ = 0, held_bytes_ = 0;
  bool extra_ = false, in_passes_ = false;
  double rate_ = kUnknown, busy_since_s_ = 0, busy_s_ = 0, ended_bytes_ = 0;
};

}  // namespace echelon::inline comm
