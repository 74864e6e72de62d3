// SPDX-License-Identifier: Apache-2.0
// The memory in which plans of one channel sum between the ranks of a host: each rank has a counter and kSlots slots
// (Transport::shared_channel). Plans follow one another, in the same sequence on all ranks.
//
// Synchronisation. A rank's counter is the number of phases (plan.hpp) that it has passed in all plans of the channel.
// It only grows, and is stored (release) after all that the rank read and wrote until then; a rank that loads it
// (acquire) sees those accesses. A slot is written again once all others have passed the phase in which they read it
// last. So a rank may be kSlots uses ahead of the slowest reader.
//
// A slot begins with a cache line that holds the number of the use whose values are complete (also stored with release,
// loaded with acquire) and room for kInline values: a small sum reads one line of each other rank.
//
// Each object is used by the thread that drives its rank's engine.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/collective/plan.hpp"
#include "comm/shared_block.hpp"

namespace echelon::inline comm {

class SharedChannel {
 public:
  static constexpr int kSlots = 4;
  static constexpr std::int64_t kSlotElems = 8192;  // elements of f32 or f64
  static constexpr std::int64_t kInline = 7;
  static std::size_t bytes();  // size of each rank's part, in whole pages

  // `parts`: by rank of the transport, the index of its part of the block; -1 if memory is not shared with it.
  SharedChannel(std::shared_ptr<SharedBlock> block, std::vector<int> parts, int rank);

  // Called at the start and at the end of a plan; between them all phases and uses are those of the plan.
  // EnvironmentError if memory is not shared with all of use.ranks.
  void begin(const SharedUse& use);
  void end(const SharedUse& use);

  // Address of the values of a range in the slot of `rank`, `offset` bytes behind the first value.
  std::byte* values(int rank, std::int64_t use, std::size_t offset, std::int64_t elems) const;
  // complete: this rank has put all its values for this use. is_complete: whether `rank` has.
  void complete(std::int64_t use);
  bool is_complete(int rank, std::int64_t use) const;
  // Whether `rank` has passed the phase.
  bool has_passed(int rank, std::int64_t phase);
  // Whether `rank` has read the values of the earlier use that occupies this rank's slot of `use`; true after `fill`.
  bool has_read(int rank, std::int64_t use);
  // This rank has begun to fill its slot, which the others will have read once they have passed the phase `freed`.
  void fill(std::int64_t use, std::int64_t freed);
  // This rank has passed the phase and all phases before it.
  void pass(std::int64_t phase);

 private:
  struct Filled {
    std::int64_t use = -1;  // counted over all plans
    std::uint64_t freed = 0;
  };
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::atomic<std::uint64_t>& counter(int rank) const;
  std::byte* slot(int rank, std::int64_t use) const;
  std::atomic<std::uint64_t>& mark(int rank, std::int64_t use) const;
  bool reached(int rank, std::uint64_t count);
  Filled& filled(std::int64_t use) { return filled_[index(use % kSlots)]; }

  std::shared_ptr<SharedBlock> block_;
  std::vector<int> parts_;
  int rank_;
  std::uint64_t phases_ = 0, passed_ = 0;  // phases in earlier plans; counter of this rank
  std::int64_t uses_ = 0;                  // slot uses in earlier plans
  std::vector<std::uint64_t> seen_;        // counter of each rank when it was last read
  Filled filled_[kSlots];
};

}  // namespace echelon::inline comm
