// SPDX-License-Identifier: Apache-2.0
// Long messages of machines travel as frames: of every length, several at once from any source, in the order sent.
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <numeric>

#include "base/check.hpp"
#include "comm/disturbed.hpp"
#include "comm/local/local.hpp"
#include "tests/support/protocol_world.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

constexpr std::size_t kFrame = 8;
constexpr int kMessages = 12, kAnyTag = 90;

// Makes message i from `from` to `to`: 0 to 5 frames, often whole ones; each byte is known.
std::vector<std::byte> message_of(const HashRng& random, int from, int to, int i) {
  const HashRng of = random.at(static_cast<std::uint64_t>((from * 31 + to) * 1000 + i));
  const std::size_t bytes = of.below(0, 3) == 0 ? kFrame * of.below(1, 5) : of.below(2, 5 * kFrame);
  std::vector<std::byte> message(bytes);
  for (std::size_t b = 0; b < bytes; ++b) message[b] = static_cast<std::byte>(of.below(3 + b, 256));
  return message;
}

// Sends to every other rank on two tags, one of which is received from any source, and posts up to three receives of a
// tag at once.
class Talker final : public Machine, public ProtocolHost {
 public:
  Talker(const HashRng& random, int ranks, double delay_s, int rank, VirtualWorld& world)
      : random_(random), ranks_(ranks), rank_(rank) {
    auto transport = make_disturbed(world.transport(rank), {.seed = 5, .delay_s = delay_s});
    actor.emplace(
        std::move(transport), *this, *this, [this] { return ended_; }, ProtocolActor::kSends, kFrame);
  }

  void on(const ProtocolEvent& event, ProtocolActions& actions) override {
    if (event.kind == ProtocolEvent::Kind::started) {
      for (int i = 0; i < kMessages; ++i)
        for (int to = 0; to < ranks_; ++to)
          if (to != rank_) send(to, i, actions);
      for (int from = 0; from < ranks_; ++from)
        for (int i = 0; from != rank_ && i < 3; ++i) ask(from, actions);
      for (int i = 0; i < 3; ++i) ask(kAnySource, actions);
    }
    if (event.kind == ProtocolEvent::Kind::sent) ++sent;
    if (event.kind == ProtocolEvent::Kind::received) {
      Room& room = rooms_.at(event.token);
      room.bytes.resize(event.bytes);
      take(room.peer, event.peer, room.bytes);
      const int peer = room.peer;
      rooms_.erase(event.token);
      ask(peer, actions);
    }
    const int all = 2 * kMessages * (ranks_ - 1);
    if (sent == all && received == all && !ended_) actions.notify_host(0), actions.finish();
  }
  void on_notified(Token, double) override { ended_ = true; }
  void failed(std::exception_ptr error) override { std::rethrow_exception(error); }

  std::optional<ProtocolActor> actor;
  int sent = 0, received = 0;

 private:
  struct Room {
    int peer;
    std::vector<std::byte> bytes;
  };

  void send(int to, int i, ProtocolActions& actions) {
    for (const int tag : {to, kAnyTag}) {
      outgoing_.push_back(message_of(random_, rank_, to, tag == kAnyTag ? i + kMessages : i));
      const std::vector<std::byte>& message = outgoing_.back();
      actions.send(static_cast<Token>(i), to, tag, message.data(), message.size(), tag == kAnyTag ? 1 : 0);
    }
  }
  void ask(int peer, ProtocolActions& actions) {
    const Token token = asked_++;
    Room& room = rooms_[token] = {peer, std::vector<std::byte>(5 * kFrame)};
    actions.receive(token, peer, peer == kAnySource ? kAnyTag : rank_, room.bytes.data(), room.bytes.size());
  }
  void take(int asked, int peer, const std::vector<std::byte>& bytes) {
    ++received;
    const int tag = asked == kAnySource ? kAnyTag : rank_;
    std::deque<std::vector<std::byte>>& wanted = wanted_[{peer, tag}];
    if (!known_[{peer, tag}]++)
      for (int i = 0; i < kMessages; ++i)
        wanted.push_back(message_of(random_, peer, rank_, tag == kAnyTag ? i + kMessages : i));
    // Receives of one route may complete in another order, but the contents must be those sent.
    const auto at = std::find(wanted.begin(), wanted.end(), bytes);
    ECHELON_CHECK(at != wanted.end(), "rank {} got {} bytes from rank {} that were not sent", rank_, bytes.size(),
                  peer);
    wanted.erase(at);
  }

  HashRng random_;
  int ranks_, rank_;
  std::deque<std::vector<std::byte>> outgoing_;
  std::map<Token, Room> rooms_;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> wanted_;
  std::map<std::pair<int, int>, int> known_;
  Token asked_ = 0;
  bool ended_ = false;
};

}  // namespace

TEST_CASE("messages of every length arrive whole, from any source, whatever the network delays", "[comm][protocol]") {
  const HashRng random(test::test_seed(), "frames");
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    VirtualNetwork network;
    network.between_hosts.jitter = 2;
    network.eager_bytes = seed % 2 == 0 ? 0 : 1000;
    network.seed = seed;
    const int ranks = 2 + static_cast<int>(seed % 4);
    CAPTURE(seed, ranks);
    const test::ProtocolRun<Talker> run(ranks, network, random.at(seed), ranks, seed % 3 == 0 ? 50e-6 : 0);
    for (const auto& rank : run.ranks()) CHECK(rank->received == 2 * kMessages * (ranks - 1));
  }
}

TEST_CASE("a long message leaves frame by frame, and a more urgent one between two frames", "[comm][protocol]") {
  struct Sender final : Machine {
    std::vector<std::byte> data = std::vector<std::byte>(4 * kFrame);
    int sent = 0;
    void on(const ProtocolEvent& event, ProtocolActions& actions) override {
      if (event.kind == ProtocolEvent::Kind::started) actions.send(1, 1, 10, data.data(), data.size(), 5);
      if (event.kind == ProtocolEvent::Kind::posted) actions.send(2, 1, 11, data.data(), 1, 0);
      sent += event.kind == ProtocolEvent::Kind::sent;
    }
  } machine;
  struct Nobody final : ProtocolHost {
    void on_notified(Token, double) override {}
    void failed(std::exception_ptr error) override { std::rethrow_exception(error); }
  } host;
  const auto world = make_local_world(2);
  ProtocolDriver driver(machine, host, kFrame);
  SendBudget budget(1);
  const auto receive = [&](int tag, std::size_t wanted) {
    std::vector<std::byte> room(4 * kFrame);
    Request request = world[1]->irecv(0, tag, room.data(), room.size());
    std::optional<Completion> done;
    for (int i = 0; i < 10 && !done; ++i) {
      driver.pass(*world[0], budget);
      done = world[1]->test(request);
    }
    REQUIRE(done);
    CHECK(done->bytes == wanted);
  };
  driver.pass(*world[0], budget);
  receive(10, kFrame);
  driver.post(0);
  receive(10, kFrame);  // was already in flight
  receive(11, 1);
  CHECK(machine.sent <= 1);
  receive(10, kFrame);
  receive(10, kFrame);
  receive(10, 0);  // whole number of frames: 4
  while (driver.pass(*world[0], budget)) {
  }
  CHECK(machine.sent == 2);
  CHECK(driver.wire().messages_sent == 6);
}

}  // namespace echelon
