// SPDX-License-Identifier: Apache-2.0
// WireCounters that one thread writes and any thread reads. They are relaxed atomics: each number is exact, but a
// reader may see a message counted before its bytes are added.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "comm/transport.hpp"

namespace echelon::inline comm {

// Bytes per peer, counted by one thread and read by any.
class PeerBytes {
 public:
  explicit PeerBytes(int peers) : bytes_(static_cast<std::size_t>(peers)) {}
  void sent(int peer, std::size_t bytes) {
    bytes_[static_cast<std::size_t>(peer)].fetch_add(bytes, std::memory_order_relaxed);
  }
  std::vector<double> read() const {
    std::vector<double> values;
    for (const auto& bytes : bytes_) values.push_back(static_cast<double>(bytes.load(std::memory_order_relaxed)));
    return values;
  }

 private:
  std::vector<std::atomic<std::uint64_t>> bytes_;
};

// Data rates, counted by one thread; any thread may restart and read them. The mean extends to the end of the last
// tenth of a second with a message, so that it is never above the peak.
class CardMeter {
 public:
  void add(double now_s, std::size_t bytes) {
    if (restarts_.load(kRelaxed)) {
      restarts_.store(false, kRelaxed);
      start_s_ = now_s;
      total_.store(0, kRelaxed);
      peak_.store(0, kRelaxed);
      open_window(now_s);
    }
    if (now_s - window_s_ >= kWindow_s) open_window(now_s);
    window_ += static_cast<double>(bytes);
    total_.store(total_.load(kRelaxed) + static_cast<double>(bytes), kRelaxed);
    peak_.store(std::max(peak_.load(kRelaxed), window_ / kWindow_s), kRelaxed);
  }
  void restart() { restarts_.store(true, kRelaxed); }
  CardRates read() const {
    if (restarts_.load(kRelaxed)) return {.peak = peak_.load(kRelaxed), .mean = 0};
    return {.peak = peak_.load(kRelaxed), .mean = total_.load(kRelaxed) / seconds_.load(kRelaxed)};
  }

 private:
  static constexpr double kWindow_s = 0.1;
  static constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
  void open_window(double now_s) {
    window_s_ = now_s, window_ = 0;
    seconds_.store(now_s - start_s_ + kWindow_s, kRelaxed);
  }
  std::atomic<bool> restarts_ = true;
  std::atomic<double> seconds_ = 0, total_ = 0, peak_ = 0;
  double start_s_ = 0, window_s_ = 0, window_ = 0;
};

class AtomicCounters {
 public:
  void sent(std::size_t bytes) { add(messages_sent_, bytes_sent_, bytes); }
  void received(std::size_t bytes) { add(messages_received_, bytes_received_, bytes); }
  void library(std::size_t bytes) { add(library_calls_, library_bytes_, bytes); }

  WireCounters read() const {
    return {.messages_sent = messages_sent_.load(std::memory_order_relaxed),
            .bytes_sent = bytes_sent_.load(std::memory_order_relaxed),
            .messages_received = messages_received_.load(std::memory_order_relaxed),
            .bytes_received = bytes_received_.load(std::memory_order_relaxed),
            .library_calls = library_calls_.load(std::memory_order_relaxed),
            .library_bytes = library_bytes_.load(std::memory_order_relaxed)};
  }

 private:
  using Word = std::atomic<std::uint64_t>;
  static void add(Word& count, Word& total, std::size_t bytes) {
    count.fetch_add(1, std::memory_order_relaxed);
    total.fetch_add(bytes, std::memory_order_relaxed);
  }

  Word messages_sent_ = 0, bytes_sent_ = 0, messages_received_ = 0, bytes_received_ = 0;
  Word library_calls_ = 0, library_bytes_ = 0;
};

// All counters of a transport that sends messages itself.
class MessageCounters {
 public:
  explicit MessageCounters(int peers) : to_peers_(peers) {}
  void sent(int peer, std::size_t bytes) {
    all_.sent(bytes);
    to_peers_.sent(peer, bytes);
    card_.add(now_s(), bytes);
  }
  void received(std::size_t bytes) {
    all_.received(bytes);
    card_.add(now_s(), bytes);
  }
  void library(std::size_t bytes) { all_.library(bytes); }

  WireCounters read() const { return all_.read(); }
  std::vector<double> bytes_to_peers() const { return to_peers_.read(); }
  CardRates card_rates() const { return card_.read(); }
  void restart_card_rates() { card_.restart(); }

 private:
  AtomicCounters all_;
  PeerBytes to_peers_;
  CardMeter card_;
};

}  // namespace echelon::inline comm
