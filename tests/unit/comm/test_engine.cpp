// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <mutex>
#include <set>
#include <thread>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "comm/local/local.hpp"
#include "comm/part_transport.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/transport_contract.hpp"

using namespace echelon;

namespace {

using Body = std::function<void(Engine&)>;

void with_engines(int ranks, const Body& body, const EngineOptions& options = {}) {
  test::run_ranks(ranks, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport), options);
    body(engine);
    Group(engine, 0).barrier();
  });
}

Job sum_job(const Engine& engine, const char* algorithm, std::vector<float>& data, int channel, int priority = 0) {
  const AllreduceRequest request{.rank = engine.rank(),
                                 .ranks = engine.size(),
                                 .elems = static_cast<std::int64_t>(data.size()),
                                 .segment_elems = 256,
                                 .hosts = {}};
  return {.plan = make_allreduce(algorithm, request),
          .data = data.data(),
          .dtype = DType::f32,
          .channel = channel,
          .priority = priority,
          .after = nullptr};
}

// A device's event that the test sets by hand.
struct Switch final : Event {
  bool ready() const override { return on.load(); }
  void wait() const override { on.wait(false); }
  std::atomic<bool> on = false;
};

double thread_cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

TEST_CASE("plans on many channels in different orders give the right sums", "[comm][engine]") {
  for (const int ranks : {1, 2, 3, 5})
    CHECK_NOTHROW(with_engines(ranks, [](Engine& engine) { test::check_many_channels(engine, 60); }));
  CHECK_NOTHROW(
      with_engines(3, [](Engine& engine) { test::check_many_channels(engine, 40); }, {.window = 4, .sends = 1}));
}

TEST_CASE("a group sums, gathers and broadcasts", "[comm][group]") {
  for (const int ranks : {1, 2, 3, 4, 5, 8, 17}) CHECK_NOTHROW(with_engines(ranks, test::check_group));
}

TEST_CASE("parts of an engine are groups of their own", "[comm][engine]") {
  for (const int ranks : {1, 2, 3, 4, 7}) CHECK_NOTHROW(with_engines(ranks, test::check_engine_split));
}

TEST_CASE("a wait inside a part names the peer by its rank among all", "[comm][engine]") {
  std::atomic<int> seen = -2;
  CHECK_NOTHROW(with_engines(4, [&](Engine& engine) {
    const std::unique_ptr<Engine> part = engine.split(engine.rank() % 2, engine.rank());
    std::vector<float> data(1000);
    const double begun_s = now_s();
    if (engine.rank() == 1) {
      const Ticket ticket = part->submit(sum_job(*part, "ring", data, 1));
      while (engine.waits().empty() && now_s() < begun_s + 10) std::this_thread::yield();
      seen = engine.waits().empty() ? -1 : engine.waits()[0].peer;
      ticket.wait();
    } else if (engine.rank() == 3) {
      while (seen == -2 && now_s() < begun_s + 10) std::this_thread::yield();
      part->submit(sum_job(*part, "ring", data, 1)).wait();
    }
  }));
  CHECK(seen == 3);
}

TEST_CASE("plans on one channel follow each other", "[comm][engine]") {
  CHECK_NOTHROW(with_engines(3, [](Engine& engine) {
    std::vector<float> data(1000, 1.0f);
    std::vector<Ticket> tickets;
    for (int i = 0; i < 4; ++i) tickets.push_back(engine.submit(sum_job(engine, "ring", data, 7)));
    for (std::size_t i = 0; i < 4; ++i) tickets[i].wait();
    for (const float value : data) ECHELON_CHECK_EQ(value, 81.0f);
    for (std::size_t i = 1; i < 4; ++i) ECHELON_CHECK_GE(tickets[i].started_s(), tickets[i - 1].started_s());
  }));
}

TEST_CASE("scratch is what the channels' largest plans take, in whatever order they start", "[comm][engine]") {
  CHECK_NOTHROW(with_engines(2, [](Engine& engine) {
    std::vector<float> small(500), large(50000);
    const auto bytes_of = [&](const std::vector<float>& data) {
      const auto plan = sum_job(engine, "naive", const_cast<std::vector<float>&>(data), 0).plan;
      return static_cast<std::size_t>(plan->slots() * plan->slot_elems()) * sizeof(float);
    };
    engine.run(sum_job(engine, "naive", large, 1));
    // Rank 0's small plan is live while the large one runs: a pool of scratch would give it what the large one left.
    const auto event = std::make_shared<Switch>();
    Job job = sum_job(engine, "naive", small, 2);
    if (engine.rank() == 1) job.after = event;
    const Ticket ticket = engine.submit(job);
    engine.run(sum_job(engine, "naive", large, 1));
    event->on = true;
    ticket.wait();
    engine.run(sum_job(engine, "naive", large, 1));
    ECHELON_CHECK_GE(engine.scratch_bytes(), bytes_of(large) + bytes_of(small));
    ECHELON_CHECK(engine.scratch_bytes() < bytes_of(large) + bytes_of(small) + 2 * 64, "{} bytes of scratch",
                  engine.scratch_bytes());
  }));
}

TEST_CASE("a job waits for its event, and library collectives wait for those before them", "[comm][engine]") {
  CHECK_NOTHROW(with_engines(2, [](Engine& engine) {
    std::vector<float> a(10, 1.0f), b(20, 1.0f), c(30, 1.0f);
    const auto event = std::make_shared<Switch>();
    Job first = sum_job(engine, "mpi", a, 1);
    first.after = event;
    const Ticket one = engine.submit(first), two = engine.submit(sum_job(engine, "mpi", b, 2));
    engine.submit(sum_job(engine, "ring", c, 3)).wait();
    ECHELON_CHECK(!one.done() && !two.done(), "the library keeps to the order of submission");
    ECHELON_CHECK_EQ(two.started_s(), 0.0);
    event->on = true;
    one.wait();
    two.wait();
    ECHELON_CHECK(a[9] == 2 && b[19] == 2 && c[29] == 2);
  }));
}

TEST_CASE("a library collective refuses a priority", "[comm][engine]") {
  Engine engine(std::move(make_local_world(1)[0]));
  std::vector<float> data(4);
  const AllreduceRequest request{.rank = 0, .ranks = 2, .elems = 4, .hosts = {}};
  Job job{.plan = make_allreduce("mpi", request),
          .data = data.data(),
          .dtype = DType::f32,
          .channel = 1,
          .priority = 2,
          .after = nullptr};
  CHECK_THROWS_WITH(engine.submit(job), Catch::Contains("has no priorities"));
}

TEST_CASE("a transport's error reaches every ticket, also of later jobs", "[comm][engine]") {
  const auto body = [](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    std::vector<float> data(100 + 10 * static_cast<std::size_t>(engine.rank()));
    const Ticket ticket = engine.submit(sum_job(engine, "naive", data, 1));
    try {
      ticket.wait();
    } catch (const EnvironmentError&) {
      ECHELON_CHECK(ticket.done());
      try {
        engine.submit(sum_job(engine, "naive", data, 2)).wait();
      } catch (const EnvironmentError&) {
        throw DataError("told twice");
      }
    }
  };
  CHECK_THROWS_WITH(test::run_ranks(2, body), Catch::Contains("told twice"));
}

TEST_CASE("an engine that goes away ends what is pending with an error", "[comm][engine]") {
  std::vector<std::unique_ptr<Transport>> world = make_local_world(2);
  std::vector<float> data(1000), other(1000);
  Ticket live, waiting;
  const double begun_s = now_s();
  {
    Engine engine(std::move(world[0]));
    live = engine.submit(sum_job(engine, "ring", data, 1));
    waiting = engine.submit(sum_job(engine, "ring", other, 1));
    while (engine.waits().empty() && now_s() < begun_s + 10) std::this_thread::yield();
    const std::vector<WaitView> waits = engine.waits();
    REQUIRE(waits.size() == 1);
    CHECK(waits[0].channel == 1);
    CHECK(waits[0].peer == 1);
    CHECK(waits[0].since_s >= begun_s);
  }
  CHECK_THROWS_AS(live.wait(), EnvironmentError);
  CHECK_THROWS_AS(waiting.wait(), EnvironmentError);
  CHECK(now_s() - begun_s < 10);
}

TEST_CASE("an idle engine uses no processor", "[comm][engine]") {
  Engine engine(std::move(make_local_world(1)[0]));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double before_s = thread_cpu_s();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(thread_cpu_s() - before_s < 0.01);
}

TEST_CASE("several threads of a rank wait at once", "[comm][engine]") {
  CHECK_NOTHROW(with_engines(3, [](Engine& engine) {
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        for (int round = 0; round < 20; ++round) {
          std::vector<float> data(500, 1.0f);
          if (round % 2 == 0)
            engine.submit(sum_job(engine, "ring", data, 20 + t)).wait();
          else
            engine.run(sum_job(engine, "ring", data, 20 + t));
          wrong += data[499] != 3.0f;
        }
      });
    for (std::thread& thread : threads) thread.join();
    ECHELON_CHECK_EQ(wrong.load(), 0);
  }));
}

TEST_CASE("an engine that goes away ends a wait under way", "[comm][engine]") {
  std::vector<std::unique_ptr<Transport>> world = make_local_world(2);
  auto engine = std::make_unique<Engine>(std::move(world[0]));
  std::vector<float> data(1000);
  const Ticket live = engine->submit(sum_job(*engine, "ring", data, 1));
  std::atomic<bool> on_notified = false;
  std::thread waiter([&] {
    try {
      live.wait();
    } catch (const EnvironmentError&) {
      on_notified = true;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  engine.reset();
  waiter.join();
  CHECK(on_notified);
}

namespace {

// A machine on an engine that is broken off; it waits for a message that never comes.
struct Listener final : Machine, ProtocolHost {
  void on(const ProtocolEvent& event, ProtocolActions& actions) override {
    if (event.kind == ProtocolEvent::Kind::started) actions.receive(0, kAnySource, 77, &byte, 1);
  }
  void on_notified(Token, double) override {}
  void failed(std::exception_ptr with) override {
    error = std::move(with);
    ++failures;
  }
  char byte = 0;
  std::exception_ptr error;
  std::atomic<int> failures = 0;
};

void expect_loss(const std::function<void()>& call) {
  try {
    call();
  } catch (const DataError& error) {
    ECHELON_CHECK_EQ(std::string(error.what()), "rank 1 is lost");
    return;
  }
  throw std::runtime_error("a call on an engine that was broken off returned");
}

}  // namespace

TEST_CASE("an engine that is broken off ends all waits, and another one goes on over the ranks left",
          "[comm][engine]") {
  for (const int waits : {0, 1, 2})
    CHECK_NOTHROW(test::run_ranks(4, [&](std::unique_ptr<Transport> transport) {
      const std::shared_ptr<Transport> whole = std::move(transport);
      const int me = whole->rank();
      Engine all(make_part_transport(whole, {0, 1, 2, 3}));
      const auto pair = all.split(me / 2, me);
      Group(all, 1).barrier();
      if (me == 1) return;  // rank 1 is lost
      Listener listener, late;
      const auto attached = all.attach(listener, listener);
      std::vector<float> data(100000, 1);
      const Ticket ticket = all.submit(sum_job(all, "ring", data, 5));
      std::thread breaker([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        all.break_off(std::make_exception_ptr(DataError("rank 1 is lost")));
      });
      if (waits > 0) expect_loss([&] { ticket.wait(); });
      if (waits > 1) expect_loss([&] { Group(*pair, 3).barrier(); });
      breaker.join();
      all.settle();
      expect_loss([&] { all.submit(sum_job(all, "ring", data, 6)).wait(); });
      expect_loss([&] { all.split(0, 0); });
      ECHELON_CHECK_EQ(listener.failures.load(), 1);
      const auto too_late = all.attach(late, late);
      ECHELON_CHECK_EQ(late.failures.load(), 1);
      Engine left(make_part_transport(whole, {0, 2, 3}, 16));
      test::check_group(left);
      std::vector<float> sum(1000, static_cast<float>(left.rank()));
      left.run(sum_job(left, "ring", sum, 5));
      for (const float value : sum) ECHELON_CHECK_EQ(value, 3.0f);
      Group(left, 1).barrier();
    }));
}
