// SPDX-License-Identifier: Apache-2.0
// Memory that ranks share, between threads.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "comm/group.hpp"
#include "comm/local/local.hpp"
#include "comm/shared_queue.hpp"
#include "parallel/p2p_link.hpp"
#include "tests/support/discrete_device.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/shared_check.hpp"

namespace echelon {
namespace {

using namespace test;

TEST_CASE("bytes received through shared memory are those sent", "[shared]") {
  for (const int ranks : {1, 2, 3, 5})
    CHECK_NOTHROW(run_ranks(ranks, [](std::unique_ptr<Transport> transport) {
      Engine engine(std::move(transport));
      check_shared_links(engine, *open_device("reference", {}));
      check_shared_collectives(engine);
    }));
}

TEST_CASE("devices read each other's boxes, or stage what travels through the host", "[shared]") {
  for (const char* card : {"", "shut", "deaf"})
    CHECK_NOTHROW(run_ranks(3, [&](std::unique_ptr<Transport> transport) {
      Engine engine(std::move(transport));
      check_shared_links(engine, *make_discrete_device(card));
    }));
}

TEST_CASE("a device's boxes stay until the other device has read them", "[shared]") {
  std::atomic<bool> taken = false;
  CHECK_NOTHROW(run_ranks(2, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    const auto device = make_discrete_device();
    const auto block = engine.share(shared_p2p_link_bytes(4));
    const bool sends = engine.rank() == 0;
    WireCounters wire;
    const auto link = make_shared_p2p_link(*device, {.group = engine, .peer = sends ? 1 : 0, .sends = sends}, block,
                                           block->of(0), 4, wire);
    float value = 1;
    const Tensor tensor{.data = &value, .shape = Shape{1}, .dtype = DType::f32};
    const auto pass = [&] { return sends ? link->send(tensor) : link->receive(tensor); };
    pass();  // through the host: the sender does not know yet that it is near
    link->finish();
    if (!sends) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (!sends) taken = true;
    pass();
    link->finish();
    ECHELON_CHECK(taken, "the sender went on before its box was read");
    Group(engine, 0).barrier();
  }));
}

TEST_CASE("ranks of two hosts share no memory", "[shared]") {
  auto world = make_local_world(2, {0, 1});
  CHECK(world[0]->share(64) == nullptr);
  CHECK(world[1]->share(64) == nullptr);
}

TEST_CASE("a lane has room for its transfer buffers and no more", "[shared]") {
  std::vector<std::max_align_t> memory(SharedQueue::bytes(2, 100) / sizeof(std::max_align_t) + 8);
  auto* at = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
  SharedQueue sender(at, 2, 100), receiver(at, 2, 100);
  CHECK_FALSE(receiver.may_take());
  for (int i = 0; i < 2; ++i) {
    REQUIRE(sender.may_fill());
    sender.to_fill()[99] = static_cast<std::byte>(i);
    sender.filled();
  }
  CHECK_FALSE(sender.may_fill());
  REQUIRE(receiver.may_take());
  CHECK(receiver.to_take()[99] == std::byte{0});
  receiver.taken();
  CHECK(sender.may_fill());
  CHECK(receiver.to_take()[99] == std::byte{1});
}

TEST_CASE("the watchdog sees who waits in shared memory, and for whom", "[shared]") {
  CHECK_NOTHROW(run_ranks(3, [](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    const auto block = engine.share(SharedRounds::bytes(8));
    SharedRounds collective({block->of(0), block->of(1), block->of(2)}, engine.rank(), 8);
    collective.begin();
    std::vector<WaitView> seen;
    if (engine.rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      collective.show();
    } else {
      collective.show();
      const double until = now_s() + 20;
      std::thread watchdog([&] {
        while (seen.empty() && now_s() < until) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          for (const WaitView& wait : engine.waits())
            if (wait.channel == 77) seen.push_back(wait);
        }
      });
      wait_for_peer(engine, *block, {.channel = 77, .peer = 2}, [&] { return collective.missing() < 0; });
      watchdog.join();
      ECHELON_CHECK_EQ(seen.size(), std::size_t{1});
      ECHELON_CHECK_EQ(seen[0].peer, 2);
      ECHELON_CHECK(seen[0].since_s > 0 && seen[0].since_s < now_s());
      ECHELON_CHECK(engine.waits().empty());
    }
    Group(engine, 0).barrier();
  }));
}

TEST_CASE("a wait in shared memory ends with its world", "[shared]") {
  const auto world = new_local_world(2);
  std::string why;
  std::thread waits([&] {
    Engine engine(local_transport(world, 0));
    try {
      const auto block = engine.share(64);
      wait_for_peer(engine, *block, {.peer = 1}, [] { return false; });
    } catch (const EnvironmentError& error) {
      why = error.what();
    }
  });
  auto other = local_transport(world, 1);
  const auto block = other->share(64);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  end_local_world(*world, "enough");
  waits.join();
  CHECK(why == "enough");
}

}  // namespace
}  // namespace echelon
