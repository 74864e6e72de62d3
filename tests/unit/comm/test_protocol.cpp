// SPDX-License-Identifier: Apache-2.0
// Drivers of state machines: the same machine on virtual time, with ranks as threads, and on an engine beside plans.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <thread>

#include "base/check.hpp"
#include "base/error.hpp"
#include "comm/disturbed.hpp"
#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "comm/local/local.hpp"
#include "tests/support/protocol_world.hpp"
#include "tests/support/ranks.hpp"

namespace echelon {
namespace {

// Rank 0 counts the messages of the others, in whatever order they come, and answers each; the others send `kRounds`
// words, one after each answer.
class Counter final : public Machine {
 public:
  static constexpr int kTag = 40, kRounds = 25;
  static constexpr Token kWord = 1, kAnswer = 2, kDone = 3;
  Counter(int rank, int size) : rank_(rank), size_(size), left_(rank == 0 ? kRounds * (size - 1) : kRounds) {}

  void on(const ProtocolEvent& event, ProtocolActions& actions) override {
    using Kind = ProtocolEvent::Kind;
    if (event.kind == Kind::started && left_ > 0) ask(actions);
    if (event.kind == Kind::started && left_ == 0) end(actions);
    if (event.kind != Kind::received) return;
    --left_;
    if (rank_ == 0) {
      ECHELON_CHECK_EQ(word_, event.peer);
      sum += word_;
      actions.send(kAnswer, event.peer, kTag, &answer_, sizeof answer_);
    }
    left_ > 0 ? ask(actions) : end(actions);
  }
  int sum = 0;

 private:
  void ask(ProtocolActions& actions) {
    actions.receive(kWord, rank_ == 0 ? kAnySource : 0, kTag, &word_, sizeof word_);
    if (rank_ > 0) actions.send(kAnswer, 0, kTag, &rank_, sizeof rank_);
  }
  void end(ProtocolActions& actions) {
    actions.notify_host(kDone);
    actions.finish();
  }
  int rank_, size_, left_, word_ = 0, answer_ = 1;
};

// Stores what it is told.
struct Listener : ProtocolHost {
  explicit Listener(Engine* engine = nullptr) {
    if (engine) promise = engine->promise();
  }
  void on_notified(Token token, double now_s) override {
    tokens.push_back(token);
    times_s.push_back(now_s);
    if (promise.ticket().valid()) promise.fulfil(0, now_s, {});
  }
  void failed(std::exception_ptr error) override {
    ++failures;
    if (promise.ticket().valid()) promise.fail(error, 0);
  }
  std::vector<Token> tokens;
  std::vector<double> times_s;
  int failures = 0;
  Promise promise;
};

// Reacts to each event as the test's script says.
struct Scripted final : Machine {
  std::function<void(const ProtocolEvent&, ProtocolActions&)> script;
  void on(const ProtocolEvent& event, ProtocolActions& actions) override { script(event, actions); }
};

void count_on_virtual_time(int k, const VirtualNetwork& network, double delay_s) {
  VirtualWorld world(k, network);
  std::vector<Counter> machines;
  std::vector<Listener> hosts(static_cast<std::size_t>(k));
  std::vector<std::unique_ptr<test::ProtocolActor>> actors;
  std::vector<VirtualActor*> all;
  machines.reserve(static_cast<std::size_t>(k));
  for (int r = 0; r < k; ++r) {
    machines.emplace_back(r, k);
    Listener& host = hosts[static_cast<std::size_t>(r)];
    auto transport = make_disturbed(world.transport(r), {.seed = network.seed, .delay_s = delay_s});
    actors.push_back(std::make_unique<test::ProtocolActor>(std::move(transport), machines.back(), host,
                                                           [&host] { return !host.tokens.empty(); }));
    all.push_back(actors.back().get());
  }
  world.run(all, 100);
  REQUIRE(machines[0].sum == Counter::kRounds * k * (k - 1) / 2);
}

}  // namespace

TEST_CASE("a machine on virtual time: any order, any delay", "[comm][protocol]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    VirtualNetwork network;
    network.between_hosts.jitter = 2;
    network.eager_bytes = seed % 2 == 0 ? 0 : 1000;
    network.seed = seed;
    CAPTURE(seed);
    count_on_virtual_time(1 + static_cast<int>(seed % 6), network, seed % 3 == 0 ? 50e-6 : 0);
  }
}

TEST_CASE("a machine serves any source beside running plans", "[comm][protocol][engine]") {
  CHECK_NOTHROW(test::run_ranks(4, [](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    Counter machine(engine.rank(), engine.size());
    Listener host(&engine);
    const auto attached = engine.attach(machine, host);
    Group group(engine, 0);
    for (int i = 0; i < 10; ++i) {
      double one[] = {1};
      group.sum(one);
      ECHELON_CHECK_EQ(one[0], 4.0);
    }
    host.promise.ticket().wait();
    if (engine.rank() == 0) ECHELON_CHECK_EQ(machine.sum, Counter::kRounds * (1 + 2 + 3));
  }));
}

TEST_CASE("a machine's error ends it alone", "[comm][protocol][engine]") {
  Engine engine(std::move(make_local_world(1)[0]));
  Scripted machine;
  machine.script = [](const ProtocolEvent&, ProtocolActions&) { throw DataError("bad message"); };
  Listener host(&engine);
  const auto attached = engine.attach(machine, host);
  CHECK_THROWS_WITH(host.promise.ticket().wait(), "bad message");
  CHECK(host.failures == 1);
  CHECK_NOTHROW(Group(engine, 0).barrier());
}

TEST_CASE("timers fire in their time, posts when their event has passed", "[comm][protocol]") {
  struct Gate final : Event {
    bool ready() const override { return on; }
    void wait() const override {}
    bool on = false;
  };
  VirtualWorld world(1, {});
  const auto transport = world.transport(0);
  Scripted machine;
  std::vector<std::pair<ProtocolEvent::Kind, Token>> seen;
  machine.script = [&](const ProtocolEvent& event, ProtocolActions& actions) {
    seen.emplace_back(event.kind, event.token);
    if (event.kind == ProtocolEvent::Kind::started) {
      actions.arm(7, 2.0);
      actions.arm(8, 1.0);
      actions.arm(9, 1.5);
    }
    if (event.token == 8) actions.disarm(9);
    if (event.token == 7) actions.notify_host(70), actions.finish();
  };
  Listener host;
  test::ProtocolActor actor(world.transport(0), machine, host, [&] { return !host.tokens.empty(); });
  world.run({&actor}, 10);
  using Kind = ProtocolEvent::Kind;
  CHECK(seen == std::vector<std::pair<Kind, Token>>{{Kind::started, 0}, {Kind::timer, 8}, {Kind::timer, 7}});
  CHECK(host.times_s == std::vector<double>{2.0});

  seen.clear();
  machine.script = [&](const ProtocolEvent& event, ProtocolActions&) { seen.emplace_back(event.kind, event.token); };
  ProtocolDriver driver(machine, host);
  SendBudget budget;
  const auto gate = std::make_shared<Gate>();
  driver.post(1, gate);
  driver.post(2);
  while (driver.pass(*transport, budget)) {
  }
  CHECK(driver.busy());
  gate->on = true;
  while (driver.pass(*transport, budget)) {
  }
  CHECK_FALSE(driver.busy());
  CHECK(seen == std::vector<std::pair<Kind, Token>>{{Kind::started, 0}, {Kind::posted, 2}, {Kind::posted, 1}});
}

TEST_CASE("urgent messages leave first, and no more than the budget allows", "[comm][protocol]") {
  const auto world = make_local_world(2);  // in a local world nothing completes before it is received
  Transport& transport = *world[0];
  Scripted machine;
  const int word = 1;
  machine.script = [&](const ProtocolEvent& event, ProtocolActions& actions) {
    if (event.kind != ProtocolEvent::Kind::started) return;
    for (int i = 0; i < 6; ++i) actions.send(static_cast<Token>(i), 1, 10 + i, &word, sizeof word, 5 - i);
  };
  Listener host;
  ProtocolDriver driver(machine, host);
  SendBudget budget(2);
  for (int i = 0; i < 5; ++i) driver.pass(transport, budget);
  CHECK(driver.wire().messages_sent == 2);
  CHECK(budget.used_up());
  budget.idle(1);
  driver.pass(transport, budget);
  CHECK(driver.wire().messages_sent == 3);
  CHECK_FALSE(budget.allows(1));
  std::vector<int> left;  // tags of messages in the order in which they left
  for (int tag = 10; tag < 16; ++tag) {
    int got = 0;
    Request request = world[1]->irecv(0, tag, &got, sizeof got);
    world[1]->test(request) ? left.push_back(tag) : world[1]->cancel(request);
  }
  CHECK(left == std::vector<int>{13, 14, 15});  // the lowest priorities
  driver.end(transport, budget);
  CHECK_FALSE(budget.used_up());
}

TEST_CASE("what a machine waits for is the watchdog's to see", "[comm][protocol][engine]") {
  std::vector<std::unique_ptr<Transport>> world = make_local_world(2);
  Engine engine(std::move(world[0]));
  Scripted machine;
  int word = 0;
  machine.script = [&](const ProtocolEvent& event, ProtocolActions& actions) {
    if (event.kind != ProtocolEvent::Kind::started) return;
    actions.receive(1, 1, 33, &word, sizeof word);
    actions.wait_for(1, 1, 33, 12);
  };
  Listener host;
  const double begun_s = now_s();
  const auto attached = engine.attach(machine, host);
  std::vector<WaitView> waits;
  while (waits.empty() && now_s() < begun_s + 10) waits = engine.waits();
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].peer == 1);
  CHECK(waits[0].channel == 33);
  CHECK(waits[0].step == 12);
  CHECK(waits[0].since_s >= begun_s);
}

TEST_CASE("an attached machine that has nothing to do uses no processor", "[comm][protocol][engine]") {
  Engine engine(std::move(make_local_world(1)[0]));
  Scripted machine;
  machine.script = [](const ProtocolEvent&, ProtocolActions&) {};
  Listener host;
  const auto attached = engine.attach(machine, host);
  const auto cpu_s = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double before_s = cpu_s();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(cpu_s() - before_s < 0.01);
}

// Records which thread drives it, as long as its timer is armed again.
struct Watcher final : Machine {
  void on(const ProtocolEvent& event, ProtocolActions& actions) override {
    {
      const std::lock_guard lock(mutex);
      drivers.insert(std::this_thread::get_id());
    }
    if (over)
      actions.notify_host(0), actions.finish();
    else
      actions.arm(1, event.now_s);
  }
  bool driven_by(std::thread::id id) {
    const std::lock_guard lock(mutex);
    return drivers.contains(id);
  }
  std::mutex mutex;
  std::set<std::thread::id> drivers;
  std::atomic<bool> over = false;
};

TEST_CASE("a thread that waits drives, and gives the wheel back", "[comm][protocol][engine]") {
  Engine engine(std::move(make_local_world(1)[0]));
  Watcher watcher, brief;
  Listener host(&engine), soon(&engine);
  const auto attached = engine.attach(watcher, host);
  const double limit_s = now_s() + 10;
  std::thread::id waiter_id;
  {
    const auto briefly = engine.attach(brief, soon);
    std::thread waiter([&] {
      waiter_id = std::this_thread::get_id();
      soon.promise.ticket().wait();
    });
    while (!(watcher.driven_by(waiter.get_id())) && now_s() < limit_s) std::this_thread::yield();
    brief.over = true;
    waiter.join();
  }
  CHECK(watcher.driven_by(waiter_id));
  {
    const std::lock_guard lock(watcher.mutex);
    watcher.drivers.clear();
  }
  const auto driven = [&] {
    const std::lock_guard lock(watcher.mutex);
    return !watcher.drivers.empty();
  };
  while (!driven() && now_s() < limit_s) std::this_thread::yield();
  CHECK(driven());
  CHECK(!watcher.driven_by(waiter_id));
  CHECK(!watcher.driven_by(std::this_thread::get_id()));
  watcher.over = true;
  host.promise.ticket().wait();
  CHECK(now_s() < limit_s);
}

TEST_CASE("a protocol is detached with its messages under way", "[comm][protocol][engine]") {
  std::vector<std::unique_ptr<Transport>> world = make_local_world(2);
  Engine engine(std::move(world[0]));
  for (int round = 0; round < 3; ++round) {
    Scripted machine;
    int word = 0;
    std::atomic<bool> begun = false;
    machine.script = [&](const ProtocolEvent& event, ProtocolActions& actions) {
      if (event.kind != ProtocolEvent::Kind::started) return;
      actions.receive(1, 1, 5, &word, sizeof word);
      actions.send(2, 1, 6, &word, sizeof word);
      begun = true;
    };
    Listener host;
    auto attached = engine.attach(machine, host);
    const double limit_s = now_s() + 10;
    while (!begun && now_s() < limit_s) std::this_thread::yield();
    attached.reset();
    CHECK(host.failures == 0);
  }
  Request late = world[1]->irecv(0, 6, nullptr, 0);  // nobody sends to this receive any more
  CHECK_FALSE(world[1]->test(late));
  world[1]->cancel(late);
}

}  // namespace echelon
