// The memory by which plans of one channel sum between the ranks of a host: of each rank a counter and kSlots slots
// (Transport::shared_channel). Plans come one after another, the same sequence on all ranks.
//
// Synchronisation. A rank's counter is the number of phases (plan.hpp) that it has passed in all plans of the channel.
// It only grows, and is stored (release) after what the rank read and wrote until then; who loads it (acquire) sees
// that. A slot is written again once all others have passed the phase in which they read it last. So a rank may be
// kSlots uses ahead of the slowest reader.
//
// A slot begins with a line that holds the number of the use whose values are complete (stored and loaded likewise) and
// room for kInline values: a sum of few bytes needs one line of each other rank.
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
  static constexpr std::int64_t kSlotElems = 8192;  // of f32 or f64
  static constexpr std::int64_t kInline = 7;
  static std::size_t bytes();  // of each rank; whole pages

  // `part`: where this rank's memory is in the block; `parts`: by rank of the transport, -1 where memory is not shared.
  SharedChannel(std::shared_ptr<SharedBlock> block, std::vector<int> parts, int rank);

  // Of a plan: from its start to its end all phases and uses are its own. EnvironmentError where memory is not shared
  // with all of use.ranks.
  void begin(const SharedUse& use);
  void end(const SharedUse& use);

  // Where the values of a range lie in the slot of `rank`, `offset` bytes behind its first one.
  std::byte* values(int rank, std::int64_t use, std::size_t offset, std::int64_t elems) const;
  // This rank has put all that it puts for this use; whether `rank` has.
  void complete(std::int64_t use);
  bool is_complete(int rank, std::int64_t use) const;
  // Whether `rank` has passed the phase.
  bool has_passed(int rank, std::int64_t phase);
  // Whether `rank` has read the values of the earlier use that lie in this rank's slot of `use`; true after `fill`.
  bool has_read(int rank, std::int64_t use);
  // This rank has begun to fill its slot, which the others have read once they have passed the phase `freed`.
  void fill(std::int64_t use, std::int64_t freed);
  // This rank has passed the phase, and all before it.
  void pass(std::int64_t phase);

 private:
  struct Filled {
    std::int64_t use = -1;  // of all plans
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
  std::uint64_t phases_ = 0, passed_ = 0;  // of the plans before; of this rank
  std::int64_t uses_ = 0;                  // of the plans before
  std::vector<std::uint64_t> seen_;        // by rank: its counter when it was last read
  Filled filled_[kSlots];
};

}  // namespace echelon::inline comm
