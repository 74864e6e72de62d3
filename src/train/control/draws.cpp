// SPDX-License-Identifier: Apache-2.0
#include "train/control/draws.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "comm/transport.hpp"
#include "train/control/binomial.hpp"

namespace echelon::inline train {
namespace {

constexpr Token kRequest = kParent + 1;  // of what rank 0 receives

}  // namespace

DrawMachine::DrawMachine(int rank, int ranks, int tag, std::int64_t end) : rank_(rank), tag_(tag), end_(end) {
  if (rank != 0) return;
  replicas_.resize(static_cast<std::size_t>(ranks));
  asking_ = ranks - 1;
}

void DrawMachine::set_trained(std::int64_t trained) {
  const std::lock_guard lock(mutex_);
  given_trained_ = trained;
}

std::int64_t DrawMachine::hand_out(Replica& replica, std::int64_t trained) {
  const std::lock_guard lock(mutex_);
  ECHELON_CHECK_LE(trained - replica.trained, std::ssize(replica.kept), "batches trained that were not drawn");
  replica.kept.erase(replica.kept.begin(), replica.kept.begin() + (trained - replica.trained));
  replica.trained = trained;
  if (next_ >= end_) return kNone;
  replica.kept.push_back(next_);
  most_kept_ = std::max(most_kept_, replica.kept.size());
  return next_++;
}

void DrawMachine::finish_if_all_know(ProtocolActions& actions) {
  if (over_ && asking_ == 0) actions.finish();
}

void DrawMachine::hear(ProtocolActions& actions) {
  actions.receive(kRequest, kAnySource, tag_, &request_, sizeof request_);
}

std::int64_t DrawMachine::untrained(const std::vector<std::int64_t>& trained, std::vector<std::int64_t>& held) const {
  const std::lock_guard lock(mutex_);
  ECHELON_CHECK_EQ(trained.size(), replicas_.size());
  for (std::size_t r = 0; r < replicas_.size(); ++r) {
    const Replica& replica = replicas_[r];
    ECHELON_CHECK(trained[r] >= replica.trained && trained[r] - replica.trained <= std::ssize(replica.kept),
                  "rank {} has trained {} batches, {} were told", r, trained[r], replica.trained);
    held.insert(held.end(), replica.kept.begin() + (trained[r] - replica.trained), replica.kept.end());
  }
  std::sort(held.begin(), held.end());
  return next_;
}

void DrawMachine::on(const ProtocolEvent& event, ProtocolActions& actions) {
  switch (event.kind) {
    case ProtocolEvent::Kind::started:
      if (asking_ > 0) hear(actions);
      return;
    case ProtocolEvent::Kind::posted: {
      std::int64_t trained = 0;
      {
        const std::lock_guard lock(mutex_);
        trained = given_trained_;
      }
      if (rank_ == 0) {
        drawn_ = hand_out(replicas_[0], trained);
        actions.notify_host(kDrawn);
        over_ = drawn_ == kNone;
        return finish_if_all_know(actions);
      }
      turn_ = 1 - turn_;
      requests_[turn_] = trained;
      actions.receive(kParent, 0, tag_ + 1, &answer_, sizeof answer_);
      actions.send(kParent, 0, tag_, &requests_[turn_], sizeof requests_[turn_], kAheadOfAll);
      actions.wait_for(kParent, 0, tag_ + 1, trained);
      return;
    }
    case ProtocolEvent::Kind::received: {
      if (event.token == kParent) {
        actions.wait_over(kParent);
        drawn_ = answer_;
        actions.notify_host(kDrawn);
        if (drawn_ == kNone) actions.finish();
        return;
      }
      Replica& replica = replicas_[static_cast<std::size_t>(event.peer)];
      replica.turn = 1 - replica.turn;
      std::int64_t& answer = replica.answers[replica.turn];
      answer = hand_out(replica, request_);
      actions.send(static_cast<Token>(event.peer), event.peer, tag_ + 1, &answer, sizeof answer, kAheadOfAll);
      if (answer == kNone) --asking_;
      if (asking_ > 0) hear(actions);
      return finish_if_all_know(actions);
    }
    case ProtocolEvent::Kind::sent:
    case ProtocolEvent::Kind::timer: return;
  }
}

}  // namespace echelon::inline train
