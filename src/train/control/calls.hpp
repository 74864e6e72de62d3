// SPDX-License-Identifier: Apache-2.0
// The control messages of strategies with asynchronous replicas: no rank waits because of them.
//
// Reports go up a binomial tree: what a rank and those behind it have done so far, as running totals, so that a report
// may replace an older one that is still waiting: at most one is under way from each rank, and a slow link or a slow
// rank makes them rarer, nobody slower. Rank 0 calls a meeting as soon as its totals ask for one; the call goes down
// the same tree, and each rank attends at its next step boundary. Memory O(log k) a rank (a report a child).
//
// Reports that only raise the weight leave a rank at most twice in one of its steps, so that a rank takes at most about
// 2 ceil(log2 k) of them in a step, however many ranks are behind it; all other news leave at once. Weights therefore
// reach rank 0 later by at most half a step for each link, a quarter on average: an epoch's meeting is called so much
// later.
//
// An epoch's meeting is called once as many samples as it has are trained; a slow replica may then still train a batch
// of that epoch.
//
// After the call that ends the run each rank closes its link to its parent with a last report.
//
// Meetings are numbered from 1. Rank 0 calls the next one after it has attended the last one, so that all ranks attend
// the same meetings in the same order. What a rank wishes counts until it attends the next meeting.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "comm/protocol/machine.hpp"
#include "train/control/words.hpp"

namespace echelon::inline train {

// Totals of a rank, or of a part of the tree.
struct Report {
  double weight = 0;            // of all samples whose gradients were computed in this attempt
  double finished = 0;          // ranks that have done all their steps
  double not_finite_rank = -1;  // the lowest whose loss is not finite; -1: none
  double meetings = 0;          // attended, by the rank that attended most
  double wishes = 0;            // bits of ControlSum::wishes, of the ranks that attended as many
  double closed = 0;            // no report comes after this one

  Report merged(const Report& other) const;
  // True if `other` differs in more than its weight.
  bool has_news_beside_weight(const Report& other) const;
  friend bool operator==(const Report&, const Report&) = default;
};

// Why a meeting was called: bits.
enum MeetingReason : std::uint32_t {
  kMeetingWish = 1,       // a signal or the clock asked for a checkpoint or a stop; the meeting's sum says for what
  kMeetingEpoch = 2,      // the replicas together have gone through the next epoch
  kMeetingEnd = 4,        // all ranks have done all their steps
  kMeetingNotFinite = 8,  // a loss is not finite
  kMeetingJoin = 16       // the warm-up with few replicas is over: the others join (data/sample_plan.hpp)
};
struct MeetingCall {
  std::int64_t number = 0;  // 0: none was called yet
  std::uint32_t reasons = 0;
};

// Total weights, over all replicas, at which rank 0 calls meetings; 0: never.
struct MeetingWeights {
  double epoch = 0;   // the next epoch is over
  bool last = false;  // and with it the run: one meeting for both
  double join = 0;    // the next warm-up is over
};

class ControlCalls final : public Machine {
 public:
  // Posted by the host after each `report`; the host is notified after each call.
  static constexpr Token kReport = 0, kCall = 0;

  // `tag`: and tag + 1. Both are the machine's own.
  ControlCalls(int rank, int ranks, int tag);

  // Any thread, before kReport is posted: this rank's totals; `weights` are read on rank 0.
  void report(const Report& totals, const MeetingWeights& weights);
  // The newest call; within `on_notified`.
  const MeetingCall& call() const { return call_; }

  void on(const ProtocolEvent& event, ProtocolActions& actions) override;

 private:
  struct Child {
    int rank = 0;
    Report newest, incoming;
  };
  void note_step(double now_s);
  void close(ProtocolActions& actions);
  void look(double now_s, ProtocolActions& actions);
  std::uint32_t reasons_of(const Report& totals) const;
  bool ended() const { return (call_.reasons & kMeetingEnd) != 0; }
  void pass_on(ProtocolActions& actions);

  int ranks_, tag_;
  int parent_ = -1;  // -1: rank 0
  std::vector<Child> children_;
  Report own_, sent_;
  bool sending_ = false, sent_any_ = false, closed_ = false;
  double sent_s_ = 0, posted_s_ = -1;  // when the last report left; when the host posted the last one, -1: none yet
  double pauses_s_[2] = {0, 0};        // between the last three posts
  MeetingWeights weights_;
  std::mutex mutex_;  // of what the host gives
  Report given_;
  MeetingWeights given_weights_;
  MeetingCall call_, incoming_;
  MeetingCall down_[2];  // by turns: the last one may still be under way
};

}  // namespace echelon::inline train
