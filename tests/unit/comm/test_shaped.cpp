// SPDX-License-Identifier: Apache-2.0
// A slowed network: its arithmetic on a clock that the test moves, and what the layers above observe.
#include <catch2/catch.hpp>
#include <thread>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/disturbed.hpp"
#include "comm/host_groups.hpp"
#include "comm/local/local.hpp"
#include "comm/network_card.hpp"
#include "comm/part_transport.hpp"
#include "comm/shaped.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/transport_contract.hpp"

namespace echelon {
namespace {

using Catch::Contains;

constexpr int kTag = 5;
constexpr std::size_t kFrame = 1448;            // content bytes of a frame
constexpr double kRate = 1e6, kDelay_s = 0.01;  // 1 byte a microsecond
constexpr double kTick_s = 1e-9;

class HandClock final : public Clock {
 public:
  double now_s() const override { return time_s; }
  double time_s = 100;
};

// All ranks of a local world on the calling thread; its time starts at 0.
struct World {
  HandClock clock;
  std::vector<std::unique_ptr<Transport>> ranks;
  std::vector<std::vector<char>> memory;
  double begun_s = clock.time_s;

  World(int size, int ranks_per_host, double burst_bytes = 0) {
    auto plain = make_local_world(size);
    ranks.resize(plain.size());
    std::vector<std::thread> threads;  // all ranks must make the world at once
    for (std::size_t r = 0; r < plain.size(); ++r)
      threads.emplace_back([&, r] {
        ranks[r] = make_shaped(
            std::move(plain[r]),
            {.bytes_per_s = kRate, .delay_s = kDelay_s, .burst_bytes = burst_bytes, .ranks_per_host = ranks_per_host},
            &clock);
      });
    for (std::thread& thread : threads) thread.join();
  }
  Transport& of(int rank) { return *ranks[static_cast<std::size_t>(rank)]; }
  void at(double s) { clock.time_s = begun_s + s; }
  double wakes_s(int rank) { return of(rank).wakes_at_s() - begun_s; }

  Request send(int from, int to, std::size_t bytes) {
    memory.emplace_back(bytes, static_cast<char>('a' + from));
    return of(from).isend(to, kTag, memory.back().data(), bytes);
  }
  Request receive(int rank, int from, std::size_t bytes) {
    memory.emplace_back(bytes, ' ');
    return of(rank).irecv(from, kTag, memory.back().data(), bytes);
  }
  // Tells whether the request is not done just before `s`, and done then.
  bool ends_at(int rank, Request& request, double s) {
    at(s - kTick_s);
    if (of(rank).test(request)) return false;
    at(s + kTick_s);
    return of(rank).test(request).has_value();
  }
};

// content() and wire_s() count whole frames.
std::size_t content(int frames) { return static_cast<std::size_t>(frames) * kFrame; }
double wire_s(int frames) { return frames * (static_cast<double>(kFrame) + 66) / kRate; }

TEST_CASE("a message takes its frames over the rate of a card, and begins to come after the delay", "[shaped]") {
  const NetworkShape shape{.bytes_per_s = kRate};
  CHECK(card_s(shape, content(10)) == Approx(wire_s(10)).epsilon(1e-12));
  CHECK(card_s(shape, content(10) + 1) == Approx(wire_s(10) + 67e-6).epsilon(1e-12));
  CHECK(card_s(shape, 0) == Approx(66e-6).epsilon(1e-12));

  World world(2, 1);
  Request receive = world.receive(1, 0, content(100)), send = world.send(0, 1, content(100));
  CHECK_FALSE(world.of(1).test(receive));
  CHECK(world.wakes_s(1) == Approx(kDelay_s).margin(kTick_s));  // when its first byte arrives
  world.at(kDelay_s);
  CHECK_FALSE(world.of(1).test(receive));
  CHECK_FALSE(world.of(1).test(receive));  // it has answered the sender meanwhile
  CHECK(world.wakes_s(1) == Approx(kDelay_s + wire_s(100)).margin(kTick_s));
  // The send ends earlier, because the kernel takes 64 KiB of a message.
  CHECK(world.ends_at(0, send, wire_s(100) - 65536e-6));
  CHECK(world.ends_at(1, receive, kDelay_s + wire_s(100)));
  CHECK(world.memory[0] == world.memory[1]);
}

TEST_CASE("messages of one card follow one another, whichever rank of the host sends them", "[shaped]") {
  World world(4, 2);
  Request first = world.receive(2, 0, content(50)), second = world.receive(3, 1, content(20));
  (void)world.send(0, 2, content(50));
  (void)world.send(1, 3, content(20));
  CHECK(world.ends_at(2, first, kDelay_s + wire_s(50)));
  CHECK(world.ends_at(3, second, kDelay_s + wire_s(70)));
  // Messages in both directions do not delay each other.
  World both(2, 1);
  Request there = both.receive(1, 0, content(30)), back = both.receive(0, 1, content(30));
  (void)both.send(0, 1, content(30));
  (void)both.send(1, 0, content(30));
  CHECK(both.ends_at(1, there, kDelay_s + wire_s(30)));
  CHECK(both.of(0).test(back));
}

TEST_CASE("a card that several hosts send to takes one message after another", "[shaped]") {
  for (const bool any : {false, true}) {
    World world(3, 1);
    Request first = world.receive(2, any ? kAnySource : 0, content(40));
    Request second = world.receive(2, any ? kAnySource : 1, content(40));
    (void)world.send(0, 2, content(40));
    (void)world.send(1, 2, content(40));
    world.at(kDelay_s);
    CHECK_FALSE(world.of(2).test(first));
    CHECK_FALSE(world.of(2).test(second));
    CHECK(world.ends_at(2, first, kDelay_s + wire_s(40)));
    CHECK(world.ends_at(2, second, kDelay_s + wire_s(80)));
  }
}

TEST_CASE("a send lasts as long as others are before it on its receiver's card", "[shaped]") {
  World world(3, 1);
  Request first = world.receive(2, 0, content(100)), second = world.receive(2, 1, content(100));
  Request sends_first = world.send(0, 2, content(100)), sends_second = world.send(1, 2, content(100));
  Request unseen = world.send(0, 1, content(100));  // no receive is posted
  world.at(kDelay_s);
  CHECK_FALSE(world.of(2).test(first));
  CHECK_FALSE(world.of(2).test(second));
  CHECK(world.ends_at(0, sends_first, wire_s(100) - 65536e-6));
  CHECK(world.ends_at(1, sends_second, wire_s(200) - 65536e-6));
  world.at(wire_s(200) + kDelay_s);
  CHECK_FALSE(world.of(0).test(unseen));
  world.at(wire_s(200) + kDelay_s + 2e-3);
  CHECK(world.of(0).test(unseen));
}

TEST_CASE("a card that was idle lets a burst through at once, and then has to save for the next", "[shaped]") {
  World world(2, 1, wire_s(50) * kRate);
  Request first = world.receive(1, 0, content(100)), second = world.receive(1, 0, content(10));
  (void)world.send(0, 1, content(100));
  (void)world.send(0, 1, content(10));
  CHECK_FALSE(world.of(1).test(first));
  CHECK_FALSE(world.of(1).test(second));
  CHECK(world.ends_at(1, first, kDelay_s + wire_s(50)));
  CHECK(world.ends_at(1, second, kDelay_s + wire_s(60)));
  // Both cards were idle since wire_s(60), as long as 30 frames take, so they may send 30 frames at once.
  world.at(wire_s(90));
  Request third = world.receive(1, 0, content(40));
  (void)world.send(0, 1, content(40));
  CHECK(world.ends_at(1, third, wire_s(90) + kDelay_s + wire_s(10)));
  world.at(10);
  Request fourth = world.receive(1, 0, content(50));
  (void)world.send(0, 1, content(50));
  CHECK(world.ends_at(1, fourth, 10 + kDelay_s));
}

TEST_CASE("messages inside a host pass as they are, and take nothing of its card", "[shaped]") {
  World world(4, 2);
  Request inside = world.receive(1, 0, content(1000)), send = world.send(0, 1, content(1000));
  CHECK(world.of(1).test(inside));
  CHECK(world.of(0).test(send));
  Request outside = world.receive(2, 0, content(10));
  (void)world.send(0, 2, content(10));
  CHECK(world.ends_at(2, outside, kDelay_s + wire_s(10)));
  CHECK(world.of(0).hosts() == std::vector<int>{0, 0, 1, 1});
  CHECK(world.of(0).machines() == std::vector<int>{0, 0, 0, 0});
  CHECK(world.of(0).host_names() == std::vector<std::string>{"local0/0", "local0/1"});
}

TEST_CASE("a rank that looks late loses nothing of its card's time", "[shaped]") {
  World world(2, 1);
  std::vector<Request> receives;
  for (int i = 0; i < 5; ++i) receives.push_back(world.receive(1, 0, content(20)));
  for (int i = 0; i < 5; ++i) (void)world.send(0, 1, content(20));
  CHECK_FALSE(world.of(1).test(receives[0]));
  world.at(kDelay_s + wire_s(100) + kTick_s);
  for (Request& receive : receives) CHECK(world.of(1).test(receive));
}

TEST_CASE("a message that TCP announces first does not come before its receive is posted", "[shaped]") {
  const int frames = 400;  // more than 320 KiB
  World world(2, 1);
  (void)world.send(0, 1, content(frames));
  world.at(0.2);
  Request late = world.receive(1, 0, content(frames));
  CHECK_FALSE(world.of(1).test(late));
  CHECK(world.ends_at(1, late, 0.2 + kDelay_s + wire_s(frames)));
  // A shorter message waits at the receiver.
  World eager(2, 1);
  (void)eager.send(0, 1, content(100));
  eager.at(0.2);
  Request there = eager.receive(1, 0, content(100));
  CHECK(eager.of(1).test(there));
}

TEST_CASE("a receive that was given up before its message leaves the card free", "[shaped]") {
  World world(2, 1);
  Request given_up = world.receive(1, 0, content(50));
  (void)world.send(0, 1, content(50));
  CHECK_FALSE(world.of(1).test(given_up));
  world.of(1).cancel(given_up);
  CHECK_FALSE(given_up.valid());
  CHECK(std::isinf(world.of(1).wakes_at_s()));
  Request next = world.receive(1, 0, content(10));
  (void)world.send(0, 1, content(10));
  CHECK(world.ends_at(1, next, kDelay_s + wire_s(60)));  // it left right after the first one
}

TEST_CASE("ranks of one host on two machines are refused", "[shaped]") {
  CHECK(groups_of_ranks(5, 2) == std::vector<int>{0, 0, 1, 1, 2});
  CHECK(names_of_groups({0, 0, 1, 2}, {0, 0, 0, 1}, {"a", "b"}) == std::vector<std::string>{"a/0", "a/1", "b/0"});
  try {
    (void)names_of_groups({0, 0, 1, 1}, {0, 0, 0, 1}, {"a", "b"});
    FAIL("not refused");
  } catch (const EnvironmentError& error) {
    CHECK_THAT(error.what(), Contains("rank 3 is on b") && Contains("on a") && Contains("network.ranks_per_host"));
  }
}

const NetworkShape kFast{.bytes_per_s = 100e6, .delay_s = 100e-6, .ranks_per_host = 2};

TEST_CASE("a slowed network keeps the contract of a transport, on parts and under faults too", "[shaped]") {
  for (const int ranks : {1, 2, 3, 5})
    CHECK_NOTHROW(test::run_ranks(ranks, [](std::unique_ptr<Transport> plain) {
      const auto transport = make_shaped(std::move(plain), kFast);
      ECHELON_CHECK(!transport->has_library_allreduce());
      ECHELON_CHECK(transport->shape() != nullptr);
      test::check_transport(*transport);
    }));
  CHECK_NOTHROW(test::run_ranks(4, [](std::unique_ptr<Transport> plain) {
    const int rank = plain->rank();
    auto slowed = make_disturbed(make_shaped(std::move(plain), kFast), {.seed = 3, .delay_s = 1e-3});
    Engine engine(make_part_transport(std::move(slowed), {0, 1, 2, 3}));
    ECHELON_CHECK(engine.transport().shape() != nullptr);
    ECHELON_CHECK(engine.transport().machines()[static_cast<std::size_t>(rank)] == 0);
    test::check_group(engine);
    test::check_many_channels(engine, 20);
    test::check_engine_split(engine);
  }));
}

TEST_CASE("an all-reduce between slowed hosts takes at least the time of its cards, whichever way it goes",
          "[shaped]") {
  // 2(k-1)/k G pass through each of 3 cards; elements have 8 bytes.
  constexpr std::int64_t kElems = 60'000;
  const NetworkShape shape{.bytes_per_s = 20e6};
  const double bound_s = 4.0 / 3 * 8 * kElems / shape.bytes_per_s;
  for (const char* algorithm : {"ring", "tree", "server"}) {
    double seconds = 0;
    test::run_ranks(3, [&](std::unique_ptr<Transport> plain) {
      Engine engine(make_shaped(std::move(plain), shape));
      const int rank = engine.rank();
      std::vector<double> values(kElems, rank + 1);
      const double start_s = now_s();
      engine.run(
          {.plan = make_allreduce(
               algorithm,
               {.rank = rank, .ranks = 3, .elems = kElems, .segment_elems = 4096, .hosts = engine.transport().hosts()}),
           .data = values.data(),
           .dtype = DType::f64,
           .channel = 1,
           .after = nullptr});
      if (rank == 0) seconds = now_s() - start_s;
      for (const double value : values) ECHELON_CHECK(value == 6);
    });
    CAPTURE(algorithm);
    CHECK(seconds > 0.8 * bound_s);  // a rank is done while up to 64 KiB of its messages are still to leave
  }
}

TEST_CASE("hosts that are groups of ranks are what plans and shared memory see", "[shaped]") {
  CHECK_NOTHROW(test::run_ranks(4, [](std::unique_ptr<Transport> plain) {
    Engine engine(make_shaped(std::move(plain), kFast));
    ECHELON_CHECK(engine.share(64) == nullptr);  // as the ranks are on two hosts
    std::vector<double> values(1000, engine.rank());
    engine.run({.plan = make_allreduce("hierarchical", {.rank = engine.rank(),
                                                        .ranks = 4,
                                                        .elems = 1000,
                                                        .hosts = engine.transport().hosts(),
                                                        .inner = "shared",
                                                        .outer = "ring"}),
                .data = values.data(),
                .dtype = DType::f64,
                .channel = 1,
                .after = nullptr});
    for (const double value : values) ECHELON_CHECK(value == 6);
    const auto of_host = engine.split(engine.rank() / 2, engine.rank());
    ECHELON_CHECK(of_host->share(64) != nullptr);
  }));
}

}  // namespace
}  // namespace echelon
