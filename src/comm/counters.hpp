// WireCounters that one thread writes and any thread reads. Relaxed atomics: each number is exact, but a reader may see
// a message counted whose bytes are not yet added.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "comm/transport.hpp"

namespace echelon::inline comm {

// Bytes by peer, counted by one thread and read by any.
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

// Rates by time, counted by one thread; restarted and read by any.
class CardMeter {
 public:
  void add(double now_s, std::size_t bytes) {
    if (restarts_.exchange(false, std::memory_order_relaxed)) {
      start_s_ = window_s_ = now_s;
      total_ = peak_ = window_ = 0;
    }
    if (now_s - window_s_ >= kWindow_s) {
      window_s_ = now_s;
      window_ = 0;
    }
    window_ += static_cast<double>(bytes);
    total_ = total_ + static_cast<double>(bytes);
    peak_ = std::max(peak_.load(), window_ / kWindow_s);
    last_s_ = now_s;
  }
  void restart() { restarts_ = true; }
  CardRates read() const {
    const double seconds = last_s_ - start_s_;
    return {.peak = peak_, .mean = restarts_ || seconds <= 0 ? 0 : total_ / seconds};
  }

 private:
  static constexpr double kWindow_s = 0.1;
  std::atomic<bool> restarts_ = true;
  std::atomic<double> start_s_ = 0, last_s_ = 0, total_ = 0, peak_ = 0;
  double window_s_ = 0, window_ = 0;
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

}  // namespace echelon::inline comm
