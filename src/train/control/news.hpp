// SPDX-License-Identifier: Apache-2.0
// That somebody steps, told to everybody: so that a rank that waits at a meeting for longer than run.hang_timeout_s
// waits for a slow rank, not for one that hangs (PhaseBoard::hear_of_step). Where replicas meet in every step no wait
// is longer than a step, and nothing is told.
//
// A rank that has done a step says so up the binomial tree, at most once an interval; rank 0 tells all, down the tree.
// A rank passes on at most one message each way in half an interval, and drops what comes too soon: while any rank
// steps, every rank hears of it in each interval or two. Messages are empty, at most 4 (k - 1) an interval.
#pragma once

#include <vector>

#include "comm/protocol/machine.hpp"

namespace echelon::inline train {

class StepNews final : public Machine {
 public:
  // Posted by the host, at most once in `interval_s`; it is notified of each message that reaches this rank.
  static constexpr Token kStepped = 0, kHeard = 0;

  // `tag`: and tag + 1. Both are the machine's own.
  StepNews(int rank, int ranks, int tag, double interval_s);

  void on(const ProtocolEvent& event, ProtocolActions& actions) override;

 private:
  void pass_up(double now_s, ProtocolActions& actions);
  void pass_down(double now_s, ProtocolActions& actions);

  const int tag_;
  const double least_s_;  // between two messages
  int parent_ = -1;       // -1: rank 0
  std::vector<int> children_;
  int under_way_[2] = {0, 0};      // messages up, and down
  double passed_s_[2] = {-1, -1};  // when the last ones were passed on; -1: none was
  std::byte nothing_{};            // where empty messages lie
};

}  // namespace echelon::inline train
