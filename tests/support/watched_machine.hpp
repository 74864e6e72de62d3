// SPDX-License-Identifier: Apache-2.0
// Wraps a protocol's machine and counts its sends, receives and waits while they are in flight, so that a test can ask
// whether a buffer is free when the host is told so. Fails a check if the machine ends with any of them in flight.
#pragma once

#include <functional>
#include <map>

#include "base/check.hpp"
#include "comm/protocol/machine.hpp"

namespace echelon::test {

class WatchedMachine final : public Machine, private ProtocolActions {
 public:
  struct Send {
    int tag = 0;
    const void* data = nullptr;
  };

  // `machine` must outlive this object. `listens`: receives of messages that never come may be in flight when it ends.
  explicit WatchedMachine(Machine& machine, bool listens = false) : machine_(machine), listens_(listens) {}

  // Called for each message that is sent, and for each one that arrives.
  std::function<void(int peer, int tag, bool sent)> observe;

  const std::map<Token, Send>& sends() const { return sends_; }
  const std::map<Token, int>& receives() const { return receives_; }  // values: tags
  const std::map<Token, int>& waits() const { return waits_; }        // values: tags

  void on(const ProtocolEvent& event, ProtocolActions& actions) override {
    if (event.kind == ProtocolEvent::Kind::sent) sends_.erase(event.token);
    if (event.kind == ProtocolEvent::Kind::received) {
      const auto received = receives_.extract(event.token);
      if (observe) observe(event.peer, received.mapped(), false);
    }
    actions_ = &actions;
    machine_.on(event, *this);
  }

 private:
  void send(Token token, int peer, int tag, const void* data, std::size_t bytes, int priority) override {
    ECHELON_CHECK(sends_.insert({token, {tag, data}}).second, "a token of two sends, tag {}", tag);
    if (observe) observe(peer, tag, true);
    actions_->send(token, peer, tag, data, bytes, priority);
  }
  void receive(Token token, int peer, int tag, void* data, std::size_t room) override {
    ECHELON_CHECK(receives_.insert({token, tag}).second, "a token of two receives, tag {}", tag);
    actions_->receive(token, peer, tag, data, room);
  }
  void arm(Token token, double at_s) override { actions_->arm(token, at_s); }
  void disarm(Token token) override { actions_->disarm(token); }
  void wait_for(Token token, int peer, int tag, std::int64_t step) override {
    ECHELON_CHECK(waits_.insert({token, tag}).second, "a token of two waits, tag {}", tag);
    actions_->wait_for(token, peer, tag, step);
  }
  void wait_over(Token token) override {
    ECHELON_CHECK_EQ(waits_.erase(token), 1u, "a wait that was not begun");
    actions_->wait_over(token);
  }
  void notify_host(Token token) override { actions_->notify_host(token); }
  void finish() override {
    ECHELON_CHECK(sends_.empty(), "a machine ends with {} sends under way", sends_.size());
    ECHELON_CHECK(listens_ || receives_.empty(), "a machine ends with {} receives under way", receives_.size());
    ECHELON_CHECK(waits_.empty(), "a machine ends with {} waits", waits_.size());
    actions_->finish();
  }

  Machine& machine_;
  bool listens_;
  ProtocolActions* actions_ = nullptr;
  std::map<Token, Send> sends_;
  std::map<Token, int> receives_, waits_;
};

}  // namespace echelon::test
