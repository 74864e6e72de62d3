// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/machines.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace echelon::fuzz {
namespace {

constexpr std::size_t kMostUnderWay = 20000;  // messages in flight; more means a leak
constexpr int kMostEvents = 20000;

// Carries out a machine's actions, although nobody is at the other end.
class Carrier final : private ProtocolActions {
 public:
  Carrier(MachineWorld& world, Tape& tape) : world_(world), tape_(tape) {}

  void run() {
    on({.kind = ProtocolEvent::Kind::started});
    for (int events = 0; events < kMostEvents && !tape_.over() && !finished_; ++events) {
      switch (tape_.below(8)) {
        case 0:
        case 1: complete_send(); break;
        case 2:
        case 3:
        case 4: complete_receive(); break;
        default: post();
      }
      if (sends_.size() + receives_.size() > kMostUnderWay) throw Defect("a machine has too many messages under way");
    }
  }

 private:
  struct OpenSend {
    Token token;
    const void* data;
    std::size_t bytes;
  };

  void on(ProtocolEvent event) {
    event.now_s = now_s_ += 1e-3;
    world_.machine().on(event, *this);
  }
  void complete_send() {
    if (sends_.empty()) return;
    const std::size_t at = tape_.below(sends_.size());
    const OpenSend send = sends_[at];
    sends_.erase(sends_.begin() + static_cast<std::ptrdiff_t>(at));
    const std::string still_there(static_cast<const char*>(send.data), send.bytes);
    on({.kind = ProtocolEvent::Kind::sent, .token = send.token});
  }
  // Completes a receive; those of one peer and tag are matched in order.
  void complete_receive() {
    if (receives_.empty()) return;
    std::size_t at = tape_.below(receives_.size());
    for (std::size_t i = 0; i < at; ++i)
      if (receives_[i].peer == receives_[at].peer && receives_[i].tag == receives_[at].tag) at = i;
    const OpenReceive receive = receives_[at];
    receives_.erase(receives_.begin() + static_cast<std::ptrdiff_t>(at));
    std::string message = world_.message_for(receive, tape_);
    if (tape_.chance(30)) damage(message, receive.room);
    message.resize(std::min(message.size(), receive.room));
    if (!message.empty()) std::memcpy(receive.data, message.data(), message.size());
    on({.kind = ProtocolEvent::Kind::received, .token = receive.token, .peer = receive.peer, .bytes = message.size()});
  }
  void damage(std::string& message, std::size_t room) {
    const std::size_t size = message.size();
    switch (tape_.below(6)) {
      case 0: message.clear(); break;
      case 1: message.resize(static_cast<std::size_t>(tape_.word()) % (room + 1)); break;
      case 2: message.assign(room, static_cast<char>(tape_.byte())); break;
      case 3: message.append(tape_.below(9), '\1'); break;
      case 4:
        for (std::size_t i = tape_.below(8); i > 0 && size > 0; --i)
          message[static_cast<std::size_t>(tape_.word()) % size] = static_cast<char>(tape_.byte());
        break;
      default:
        if (size < 8) break;
        // Sets one of the first words, where messages have heads, to a boundary.
        const std::array<std::int64_t, 8> values = {0, -1, 1, 1LL << 31, -(1LL << 31), 1LL << 62, ~(1LL << 62), 64};
        const std::size_t at = 8 * (tape_.below(6) % (size / 8));
        const std::int64_t value = values[tape_.below(values.size())];
        std::memcpy(message.data() + at, &value, tape_.chance(128) ? 4 : 8);
    }
  }
  void post() {
    const std::vector<Token> posts = world_.posts();
    if (posts.empty()) return;
    const Token token = posts[tape_.below(posts.size())];
    world_.prepare(token);
    on({.kind = ProtocolEvent::Kind::posted, .token = token});
  }

  void send(Token token, int peer, int tag, const void* data, std::size_t bytes, int) override {
    sends_.push_back({token, data, bytes});
    world_.sent(peer, tag, bytes > 0 ? std::string(static_cast<const char*>(data), bytes) : std::string());
  }
  void receive(Token token, int peer, int tag, void* data, std::size_t room) override {
    receives_.push_back({token, peer, tag, static_cast<std::byte*>(data), room});
  }
  void arm(Token, double) override {}
  void disarm(Token) override {}
  void wait_for(Token, int, int, std::int64_t) override {}
  void wait_over(Token) override {}
  void notify_host(Token token) override { world_.notified(token); }
  void finish() override { finished_ = true; }

  MachineWorld& world_;
  Tape& tape_;
  std::vector<OpenSend> sends_;
  std::vector<OpenReceive> receives_;
  double now_s_ = 0;
  bool finished_ = false;
};

}  // namespace

std::uint64_t Tape::word() {
  std::uint64_t word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8 | byte();
  return word;
}

bool MachineTarget::take(const std::string& input) {
  Tape tape(input);
  return refused_with({kExitInternal, kExitEnvironment}, [&] {
    const std::unique_ptr<MachineWorld> made = world(tape);
    Carrier(*made, tape).run();
  });
}

std::string floats(std::size_t count, Tape& tape) {
  std::string all;
  const float scale = static_cast<float>(tape.byte()) / 64;
  for (std::size_t i = 0; i < count; ++i) all += bytes_of(scale * static_cast<float>(i % 17) - 1);
  return all;
}

}  // namespace echelon::fuzz
