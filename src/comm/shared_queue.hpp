// SPDX-License-Identifier: Apache-2.0
// Queues and rounds of ranks of one host in shared memory (shared_block.hpp). They send no message, and copy nothing
// but what the caller copies into and out of the buffers. Lock-free; each end is used by one thread.
//
// Positions are counters that only grow; storing one (release) publishes all that the rank wrote before it. Both ends
// compute the same layout from the same numbers, so they must be given equal ones.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/engine.hpp"

namespace echelon::inline comm {

// Blocks until `ready` returns true. Polls 200 times, then yields after each poll; after 2 ms it sleeps between polls
// as the engine does, and after 5 ms `wait` appears in engine.waits() for the watchdog. Throws EnvironmentError if the
// world has ended (SharedBlock::check).
void wait_for_peer(Engine& engine, const SharedBlock& block, const WaitView& wait, const std::function<bool()>& ready);

struct alignas(64) SharedCounter {
  std::atomic<std::uint64_t> value = 0;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// A queue of `buffers` buffers from one rank to another: one sender, one receiver, first in, first out. No call blocks.
class SharedQueue {
 public:
  // The shared memory that it needs.
  static std::size_t bytes(std::size_t buffers, std::size_t buffer_bytes);
  // `memory` is shared by both ends, aligned to 64 bytes and initially zero.
  SharedQueue(std::byte* memory, std::size_t buffers, std::size_t buffer_bytes);

  // For the sender: whether a buffer is free, which one, and publishing it after it was filled.
  bool may_fill() const;
  std::byte* to_fill() const { return buffer(mine_); }
  void filled();
  bool all_taken() const { return received_->value.load(std::memory_order_acquire) == mine_; }
  // For the receiver: whether a buffer is full, which one, and returning it after it was read.
  bool may_take() const;
  std::byte* to_take() const { return buffer(mine_); }
  void taken();
  // Index of the next buffer of this end, in [0, buffers).
  std::size_t place() const { return static_cast<std::size_t>(mine_ % buffers_); }

 private:
  std::byte* buffer(std::uint64_t number) const;

  SharedCounter* sent_;
  SharedCounter* received_;
  std::byte* first_;
  std::size_t buffers_, stride_;
  std::uint64_t mine_ = 0;  // number of buffers that this end has filled or taken
};

// Rounds in which each rank publishes a slot of bytes to all others; all ranks take part in every round, in one order.
class SharedRounds {
 public:
  static std::size_t bytes(std::size_t slot_bytes);  // size of each rank's part
  // `parts` are by rank; `rank` is this one.
  SharedRounds(std::vector<std::byte*> parts, int rank, std::size_t slot_bytes);

  // The slot of `rank` in the current round. Its rank writes it before `show`; others read it once missing() is -1.
  // Two slots alternate, so that a rank may write the next round while others still read the current one.
  std::byte* slot(int rank) const;
  void begin() { ++round_; }
  // Publishes this rank's slot. Calls are counted separately from rounds, so that a round may have several stages.
  void show();
  // The lowest rank that has called `show` less often than this one; -1: none has.
  int missing() const;

 private:
  SharedCounter& shown_by(int rank) const;

  std::vector<std::byte*> parts_;
  int rank_;
  std::size_t stride_;
  std::uint64_t round_ = 0, shown_ = 0;
};

}  // namespace echelon::inline comm
