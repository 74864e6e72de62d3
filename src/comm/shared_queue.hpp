// What ranks of one host do through memory that they share (shared_block.hpp): no message, no copy but in and out.
//
// Positions are counters that only grow; who writes one publishes what it wrote before. Both sides lay the memory out
// alike from the same numbers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/engine.hpp"

namespace echelon::inline comm {

// Returns once `ready` returns true. Spins shortly, then yields after each poll, then sleeps between polls, as the
// engine does; the watchdog reads `wait` off the engine after a few milliseconds. Throws where the world has ended.
void wait_for_peer(Engine& engine, const SharedBlock& block, const WaitView& wait, const std::function<bool()>& ready);

struct alignas(64) SharedCounter {
  std::atomic<std::uint64_t> value = 0;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// A queue of buffers from one rank to another.
class SharedQueue {
 public:
  static std::size_t bytes(std::size_t buffers, std::size_t buffer_bytes);
  // At `memory`, which both ends see; zero at first.
  SharedQueue(std::byte* memory, std::size_t buffers, std::size_t buffer_bytes);

  // The sender's: a buffer may be filled, this is it, it is full.
  bool may_fill() const;
  std::byte* to_fill() const { return buffer(mine_); }
  void filled();
  bool all_taken() const { return received_->value.load(std::memory_order_acquire) == mine_; }
  // The receiver's.
  bool may_take() const;
  std::byte* to_take() const { return buffer(mine_); }
  void taken();
  // Of the buffer that is next, among the buffers.
  std::size_t place() const { return static_cast<std::size_t>(mine_ % buffers_); }

 private:
  std::byte* buffer(std::uint64_t number) const;

  SharedCounter* sent_;
  SharedCounter* received_;
  std::byte* first_;
  std::size_t buffers_, stride_;
  std::uint64_t mine_ = 0;  // buffers that this end has filled or taken
};

// A place where ranks show each other a slot of bytes each, again and again, in the same order on all.
class SharedRounds {
 public:
  static std::size_t bytes(std::size_t slot_bytes);  // of each rank
  // `parts` by rank, of which `rank` is this one's.
  SharedRounds(std::vector<std::byte*> parts, int rank, std::size_t slot_bytes);

  // Of the round under way. A slot is written by its rank before `show`, and read by all after they have seen
  // `shown`; the one after the next round may be written at once.
  std::byte* slot(int rank) const;
  void begin() { ++round_; }
  // This rank has done what others wait for.
  void show();
  // The lowest rank that has not shown as often as this one; -1: all have.
  int missing() const;

 private:
  SharedCounter& shown_by(int rank) const;

  std::vector<std::byte*> parts_;
  int rank_;
  std::size_t stride_;
  std::uint64_t round_ = 0, shown_ = 0;
};

}  // namespace echelon::inline comm
