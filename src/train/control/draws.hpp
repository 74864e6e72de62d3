// SPDX-License-Identifier: Apache-2.0
// The queue of batches that replicas draw from (data/draw_plan.hpp): rank 0 hands out numbers 0, 1, 2, .., each once,
// in order. A replica draws ahead of its training, so that the answer's way is hidden, and trains what it draws in
// order; with each request it tells how many it has trained.
//
// A request and an answer of 8 bytes a batch, all of them with rank 0: it handles k requests in the time of a step,
// each in O(1) whatever k is. Memory: rank 0 keeps the numbers that a replica has drawn and not told to be trained, as
// many as the replica reads ahead and two. Nobody waits for anybody but rank 0's engine.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "comm/protocol/machine.hpp"

namespace echelon::inline train {

class DrawMachine final : public Machine {
 public:
  // Posted by the host for each draw, the next one after it was notified of the last one's number.
  static constexpr Token kDraw = 0, kDrawn = 0;
  static constexpr std::int64_t kNone = -1;

  // Numbers below `end` are handed out. `tag`: and tag + 1; both are the machine's own.
  DrawMachine(int rank, int ranks, int tag, std::int64_t end);

  // Any thread, before kDraw is posted: how many of its draws this replica has trained.
  void set_trained(std::int64_t trained);
  // The number that was drawn, kNone where none is left; within `on_notified`.
  std::int64_t drawn() const { return drawn_; }

  // On rank 0, from any thread while no replica trains. Returns the next number to be handed out. `held` gets the
  // earlier numbers that are not trained, in order; rank r has trained the first trained[r] of its draws.
  std::int64_t untrained(const std::vector<std::int64_t>& trained, std::vector<std::int64_t>& held) const;
  std::size_t most_kept() const { return most_kept_; }  // numbers of one replica at once

  void on(const ProtocolEvent& event, ProtocolActions& actions) override;

 private:
  struct Replica {
    std::int64_t trained = 0;  // of its draws, which are no longer in `kept`
    std::vector<std::int64_t> kept = {};
    std::int64_t answers[2] = {};  // by turns: the last one may still be under way
    int turn = 0;
  };
  std::int64_t hand_out(Replica& replica, std::int64_t trained);
  void hear(ProtocolActions& actions);
  void finish_if_all_know(ProtocolActions& actions);

  int rank_, tag_;
  std::int64_t end_;
  mutable std::mutex mutex_;  // of what the host gives and reads
  std::int64_t given_trained_ = 0;
  std::int64_t next_ = 0;
  std::size_t most_kept_ = 0;
  std::vector<Replica> replicas_;  // on rank 0, by rank
  int asking_ = 0;                 // there: others that were not told that none is left
  bool over_ = false;              // there: nor does rank 0 draw any more
  std::int64_t request_ = 0;       // received, from any of them
  std::int64_t requests_[2] = {};  // of this rank, by turns
  int turn_ = 0;
  std::int64_t answer_ = kNone, drawn_ = kNone;
};

}  // namespace echelon::inline train
