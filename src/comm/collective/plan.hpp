// SPDX-License-Identifier: Apache-2.0
// A collective is planned, then run. A plan describes what one rank does, as a list of steps computed on demand.
//
// The description has three uses: the executor runs it, the counting transport compares its messages and bytes with
// the price list (configs/strategies/ALLREDUCE.md), and plan_time.hpp computes its time on a network without running
// it.
//
// Rules that every plan keeps
//   * Ranges are in elements of the caller's buffer. `slot` is the index of a piece of scratch memory of slot_elems()
//   elements.
//   * A step names at most two earlier steps that must be done before it starts (`after`). Where two are not enough,
//   every step below the index `after_all` must be done as well.
//   * A step waits, directly or through the steps that it names, for every earlier step that writes what it reads or
//   overwrites, or that reads what it overwrites, because copies and sums of one plan may run at the same time.
//   * Messages from a to b match in order: the i-th send to b in a's plan is the i-th receive from a in b's, of equal
//   size.
//   * An empty range makes no step at all.
//   * The order of the steps makes progress on every transport, even one that buffers nothing, if at least the first
//   kLeastWindow unfinished steps are looked at: receives come before the sends that they could wait for.
//   * After the last step the buffer holds the result, with the same bits on every rank.
//   * A plan is immutable and holds no buffer: any thread may read it, and one plan may run again and again.
//
// Steps
//   send     sends a range of the buffer (slot < 0), or the first range.elems() of the slot, to peer
//   recv     receives from peer into the range of the buffer (slot < 0), or into the slot
//   reduce   buffer range += slot
//   copy     buffer range = slot, or slot = buffer range where `to_slot`
//   library  the transport's own all-reduce of the range
//   put      this rank's slot of shared memory = range of the buffer
//   sum      buffer range = sum of the ranks' slots in one binary tree over ranks; this rank's term is the buffer
//   get      buffer range = slot of peer
// The last three work on memory that the ranks of a host share (shared_channel.hpp) and start in the plan's order; each
// waits until other ranks have reached the points in their plans that it names (SharedPart).
// wire_form.hpp defines `copy`, `reduce` and messages for values that are encoded on the wire.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline comm {

// An executor must look at this many steps from the first unfinished one on.
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

// Place and time of a step on shared memory. A plan on shared memory has phases, numbered from 1, which are the same on
// all ranks that share it: a rank that has passed phase p has done all its steps of the phases up to p.
struct SharedPart {
  std::int64_t use = 0;     // index of a slot use in the plan; memory holds SharedChannel::kSlots of them
  std::int64_t offset = 0;  // elements from the start of the slot
  std::int64_t phase = 0;   // the phase that this rank has passed once the step is done; 0: none
  std::int64_t needs = 0;   // get: the phase that the peer must have passed; a sum waits for the puts of this use
  std::int64_t freed = 0;   // put: the phase that the others have passed once they have read the slot
  bool keeps = false;       // sum: also written to this rank's slot
};

// The part of a plan that uses memory shared by the ranks of its host.
struct SharedUse {
  std::vector<int> ranks = {};  // ascending, including this rank; empty: no shared memory is used
  std::int64_t phases = 0, uses = 0;
  std::int64_t passed_at_start = 0;  // phases before this rank's first step on shared memory
};

struct Step {
  StepKind kind = StepKind::send;
  int peer = -1;
  ElemRange range;
  int slot = -1;
  bool to_slot = false;
  bool sum = false;  // copy into a slot: the range already holds the sum over all ranks
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
  // The executor provides this scratch: slots() times slot_elems() elements.
  virtual int slots() const { return 0; }
  virtual std::int64_t slot_elems() const { return 0; }
  virtual const SharedUse& shared() const;
  // Whether some step is of kind `library`: the engine then starts such plans strictly in the order of submission.
  virtual bool uses_library() const { return false; }
};

// A plan whose steps are stored, which takes O(steps) memory: for algorithms with few steps.
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

// Part i of `parts` parts of `elems`, as even as whole elements allow (the first elems % parts are one longer). Parts
// are contiguous and rising; with elems < parts the last ones are empty.
ElemRange even_part(std::int64_t elems, int parts, int i);

}  // namespace echelon::inline comm
