// A collective is planned, then run. A plan is what one rank does, as a list of steps computed on demand.
//
// One description, three uses: the executor runs it, the counting transport compares its messages and bytes with
// the price list (configs/strategies/ALLREDUCE.md), and plan_time.hpp computes its time on a network without running
// it.
//
// Rules that every plan keeps
//   * Ranges are in elements of the buffer that the caller gives. `slot` numbers scratch memory of slot_elems()
//   elements.
//   * A step names at most two earlier steps that must be done before it starts (`after`); indices below its own. Where
//   two are not enough, every step below the index `after_all` must be done as well.
//   * A step waits, itself or through those that it names, for every earlier one that writes what it reads or
//   overwrites, or reads what it overwrites: copies and sums of one plan may run at the same time.
//   * Messages from a to b match in order: the i-th send to b in a's plan is the i-th receive from a in b's, of equal
//   size.
//   * An empty range makes no step at all.
//   * The steps are in an order that makes progress on every transport, even one that buffers nothing, as long as the
//   first kLeastWindow unfinished steps are looked at: receives come before the sends that they could wait for.
//   * After the last step the buffer holds the result, with the same bits on every rank.
//   * A plan is immutable and holds no buffer: any thread may read it, and one plan may run again and again.
//
// Steps
//   send     range of the buffer (slot < 0), or the first range.elems() of slot, to peer
//   recv     from peer into the range of the buffer (slot < 0), or into the slot
//   reduce   buffer range += slot
//   copy     buffer range = slot, or slot = buffer range where `to_slot`
//   library  the transport's own all-reduce of the range
//   put      own slot of shared memory = range of the buffer
//   sum      buffer range = sum of the ranks' slots, this rank's term being the buffer, in one binary tree over ranks
//   get      buffer range = slot of peer
// The last three work on memory that the ranks of a host share (shared_channel.hpp) and start in the plan's order; each
// waits until other ranks have come as far in their plans as it names (SharedPart).
// What `copy`, `reduce` and messages mean where values are coded on the wire is in wire_form.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline comm {

// Steps from the first unfinished one that an executor must look at.
inline constexpr int kLeastWindow = 4;

enum class StepKind : std::uint8_t { send, recv, reduce, copy, library, put, sum, get };

constexpr bool on_shared_memory(StepKind kind) { return kind >= StepKind::put; }

struct ElemRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t elems() const { return end - begin; }
  bool empty() const { return end <= begin; }
  friend bool operator==(const ElemRange&, const ElemRange&) = default;
};

// Where a step on shared memory works, and when. A plan on shared memory has phases, numbered from 1, the same on all
// ranks that share it: a rank that has passed phase p has done all its steps of the phases up to p.
struct SharedPart {
  std::int64_t use = 0;     // of a slot, counted over the plan; SharedChannel::kSlots of them lie in memory
  std::int64_t offset = 0;  // elements from the start of the slot
  std::int64_t phase = 0;   // that is passed once this step is done; 0: none
  std::int64_t needs = 0;   // get: the phase that the peer must have passed; a sum waits for the puts of this use
  std::int64_t freed = 0;   // put: the phase that the others have passed once they have read the slot
  bool keeps = false;       // sum: written to the own slot too
};

// What a plan needs of the memory that the ranks of its host share.
struct SharedUse {
  std::vector<int> ranks = {};  // rising, this rank among them; empty: nothing
  std::int64_t phases = 0, uses = 0;
  std::int64_t passed_at_start = 0;  // the phases before this rank's first step on shared memory
};

struct Step {
  StepKind kind = StepKind::send;
  int peer = -1;
  ElemRange range;
  int slot = -1;
  bool to_slot = false;
  bool sum = false;  // copy into a slot: the range is summed over all ranks already
  std::array<std::int64_t, 2> after = {-1, -1};
  std::int64_t after_all = 0;
  SharedPart shared = {};
};

class Plan {
 public:
  virtual ~Plan() = default;
  virtual std::string_view name() const = 0;
  virtual std::int64_t steps() const = 0;
  // 0 <= index < steps(). O(log ranks) at most.
  virtual Step step(std::int64_t index) const = 0;
  // Scratch that the executor provides: slots() times slot_elems() elements.
  virtual int slots() const { return 0; }
  virtual std::int64_t slot_elems() const { return 0; }
  virtual const SharedUse& shared() const;
  // Some step is of kind `library`: the engine then starts such plans strictly in the order of submission.
  virtual bool uses_library() const { return false; }
};

// A plan whose steps are stored, O(steps) memory: for algorithms of few steps.
class ListedPlan final : public Plan {
 public:
  ListedPlan(std::string name, std::vector<Step> steps, int slots = 0, std::int64_t slot_elems = 0,
             SharedUse shared = {});
  std::string_view name() const override { return name_; }
  std::int64_t steps() const override { return static_cast<std::int64_t>(steps_.size()); }
  Step step(std::int64_t index) const override { return steps_[static_cast<std::size_t>(index)]; }
  int slots() const override { return slots_; }
  std::int64_t slot_elems() const override { return slot_elems_; }
  const SharedUse& shared() const override { return shared_; }
  bool uses_library() const override { return uses_library_; }

 private:
  std::string name_;
  std::vector<Step> steps_;
  int slots_;
  std::int64_t slot_elems_;
  SharedUse shared_;
  bool uses_library_ = false;
};

// Part i of n of `elems`, as even as whole elements allow (the first elems % n parts are one longer). Parts are
// contiguous and rising; with elems < n the last ones are empty.
ElemRange even_part(std::int64_t elems, int parts, int i);

}  // namespace echelon::inline comm
