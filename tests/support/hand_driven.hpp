// SPDX-License-Identifier: Apache-2.0
// Drives a protocol's machine by hand: the test carries its messages.
#pragma once

#include <cstring>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "comm/protocol/machine.hpp"

namespace echelon::test {

class HandDriven final : private ProtocolActions {
 public:
  struct Receive {
    Token token = 0;
    int peer = 0, tag = 0;
    void* data = nullptr;
    std::size_t room = 0;
  };

  // Starts the machine, which must outlive this object.
  explicit HandDriven(Machine& machine) : machine_(machine) { machine_.on({}, *this); }

  void post(Token token) { machine_.on({.kind = ProtocolEvent::Kind::posted, .token = token}, *this); }
  void complete_sends() {
    for (const Token token : std::exchange(sends_, {}))
      machine_.on({.kind = ProtocolEvent::Kind::sent, .token = token}, *this);
  }
  // Delivers a message of this rank and tag to the receive that was posted first; fails a check where there is none.
  template <class T>
  void arrive(int peer, int tag, const std::vector<T>& message) {
    for (std::size_t i = 0; i < receives_.size(); ++i) {
      const Receive receive = receives_[i];
      if (receive.peer != peer || receive.tag != tag) continue;
      const std::size_t bytes = message.size() * sizeof(T);
      ECHELON_CHECK_LE(bytes, receive.room, "bytes of a message");
      receives_.erase(receives_.begin() + static_cast<std::ptrdiff_t>(i));
      if (bytes > 0) std::memcpy(receive.data, message.data(), bytes);
      machine_.on({.kind = ProtocolEvent::Kind::received, .token = receive.token, .peer = peer, .bytes = bytes}, *this);
      return;
    }
    ECHELON_CHECK(false, "nothing is received from rank {} with tag {}", peer, tag);
  }
  const std::vector<Token>& notified() const { return notified_; }

 private:
  void send(Token token, int, int, const void*, std::size_t, int) override { sends_.push_back(token); }
  void receive(Token token, int peer, int tag, void* data, std::size_t room) override {
    receives_.push_back({token, peer, tag, data, room});
  }
  void arm(Token, double) override {}
  void disarm(Token) override {}
  void wait_for(Token, int, int, std::int64_t) override {}
  void wait_over(Token) override {}
  void notify_host(Token token) override { notified_.push_back(token); }
  void finish() override {}

  Machine& machine_;
  std::vector<Token> sends_, notified_;
  std::vector<Receive> receives_;
};

}  // namespace echelon::test
