// SPDX-License-Identifier: Apache-2.0
// Builds a listed plan message by message. Each step waits for the steps that its ranges and slots depend on (a read
// for the last write; a write for the last write and the reads since), so that independent segments overlap.
//
// All ranks must make their calls in one global order in which the messages could be run one at a time; then every
// window of at least kLeastWindow steps makes progress.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/collective/plan.hpp"
#include "comm/collective/range_uses.hpp"

namespace echelon::inline comm {

inline constexpr std::int64_t kDefaultSegment = 64 * 1024;  // elements: 256 KiB of f32

// The ranks that act together in a part of a plan, and the index of this rank among them.
struct Team {
  std::vector<int> ranks;  // by index; empty: index i is rank i
  int me = 0;
  int members = static_cast<int>(ranks.size());

  int size() const { return members; }
  int operator[](int index) const { return ranks.empty() ? index : ranks[static_cast<std::size_t>(index)]; }
};

class PlanBuilder {
 public:
  enum class Arrival : std::uint8_t { replaces, adds };
  // A message received into a slot, which is to be added to the buffer.
  struct Aside {
    int slot = -1;
    ElemRange range;
    std::int64_t received = -1;
  };

  static constexpr int kSlots = 4;
  // Messages of `exchange` have at most segment_elems (0: kDefaultSegment). Those to be added are received into `slots`
  // slots in turn, which bounds scratch memory to that many segments.
  explicit PlanBuilder(std::int64_t segment_elems, int slots = kSlots);

  // Cuts a range into segments, as evenly as whole elements allow; an empty range gives no segment.
  std::vector<ElemRange> segments(ElemRange range) const;

  // Sends `out` to one peer while it receives `in` from another, segment by segment; either range may be empty.
  void exchange(int to, ElemRange out, int from, ElemRange in, Arrival arrival);

  // One message in one piece. Each call returns the index of its step, which also waits for step `after` (-1: none).
  std::int64_t send(int peer, ElemRange range, std::int64_t after = -1);
  std::int64_t receive(int peer, ElemRange range, std::int64_t after = -1);
  Aside receive_aside(int peer, ElemRange range, std::int64_t after = -1);
  std::int64_t add(const Aside& aside);

  // Adds a step on shared memory. All calls name the ranks of the same `team`; the caller gives kind, range, peer and
  // `shared`. Phases and uses are numbered from 0 in each part of a plan that a call of `next_part` begins.
  std::int64_t on_shared(Step step);
  void next_part(const Team& team, std::int64_t phases, std::int64_t uses);

  // Appends the steps of another plan, whose ranks are indices in `team` and whose buffer begins at element `first` of
  // this one; slots are shared. A check fails for a plan that uses the library.
  void embed(const Plan& plan, const Team& team, std::int64_t first);

  // Returns the plan and leaves the builder empty.
  std::shared_ptr<const Plan> finish(std::string name);

 private:
  std::int64_t append(Step step, std::vector<std::int64_t> waits);
  bool comes_after(std::int64_t step, std::int64_t earlier, int links) const;
  void name_waits(Step& step, std::vector<std::int64_t> waits) const;
  void join_phases();

  std::int64_t segment_;
  int slots_in_turn_;
  std::vector<Step> steps_;
  RangeUses buffer_, slots_;  // slot i counts as element i
  std::int64_t asides_ = 0;
  int slots_used_ = 0;
  std::int64_t slot_elems_ = 0;
  SharedUse shared_;
  std::int64_t first_phase_ = 0, first_use_ = 0;  // where the current part begins
};

}  // namespace echelon::inline comm
