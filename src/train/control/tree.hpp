// SPDX-License-Identifier: Apache-2.0
// The control words of strategies that synchronise replicas at every step: one sum over the ranks, up a binomial tree
// and down it again. At most 2 log2(k) messages and constant memory a rank, 2 (k-1) messages in all; the sum is taken
// in the tree ((0+1)+(2+3))+((4+5)+..), whose bits contiguous powers of two of ranks share (`sum_in_tree`).
//
// Times by rank go only to rank 0, with the words of every `sample_every`-th step.
#pragma once

#include <vector>

#include "comm/protocol/machine.hpp"
#include "train/control/words.hpp"

namespace echelon::inline train {

class ControlTree final : public Machine {
 public:
  static constexpr Token kWords = 0, kFlush = 1;  // posts
  static constexpr Token kSum = 0, kFlushed = 1;  // notifications

  // `tag`: and tag + 1. Both are the machine's own.
  ControlTree(int rank, int ranks, int tag, std::int64_t sample_every = 1);

  // Called by the host before it posts kWords. The machine answers kSum once `sum` is that of the same step; messages
  // down the tree may still be queued then. It answers kFlush by kFlushed once all messages have left.
  void set_words(const ControlWords& words) { words_ = words; }
  const ControlSum& sum() const { return total_; }
  // On rank 0 the times of each rank; empty elsewhere and between samples.
  const std::vector<RankStep>& times() const { return times_; }

  void on(const ProtocolEvent& event, ProtocolActions& actions) override;

 private:
  struct Child {
    int rank = 0;
    std::size_t behind = 0;  // ranks of its part of the tree
    bool came = false;
    std::vector<std::byte> message;
  };
  bool samples() const { return step_ % sample_every_ == 0; }
  std::size_t up_bytes(std::size_t ranks) const;
  void begin(ProtocolActions& actions);
  void merge_children(ProtocolActions& actions);
  void send(std::size_t to, int rank, int tag, const void* data, std::size_t bytes, ProtocolActions& actions);
  void send_up(ProtocolActions& actions);
  void send_down(ProtocolActions& actions);
  void flush(ProtocolActions& actions);

  int rank_, tag_;
  std::int64_t sample_every_;
  int parent_ = -1;              // -1: the root, rank 0
  std::vector<Child> children_;  // nearest first: the order of the sum
  std::int64_t step_ = -1;
  ControlWords words_;
  ControlSum sum_, total_;
  std::vector<RankStep> behind_, times_;  // of this rank and those behind it
  std::size_t merged_ = 0;                // children
  int sending_ = 0;                       // messages queued or under way
  bool flushing_ = false;
  // Sent alternately, because the last message may still be in flight when the next step begins.
  std::vector<std::byte> up_[2];
  ControlSum down_[2];
};

}  // namespace echelon::inline train
