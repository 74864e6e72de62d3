// SPDX-License-Identifier: Apache-2.0
// The queue of batches on virtual time: in any schedule each number is drawn by one replica, fast ones draw more, a
// checkpoint lists as open what is not trained, and all ranks end.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "base/check.hpp"
#include "comm/virtual/world.hpp"
#include "tests/support/protocol_world.hpp"
#include "tests/support/random.hpp"
#include "train/control/draws.hpp"

namespace echelon {
namespace {

struct Schedule {
  int ranks = 1;
  int slow = -1;  // this rank's steps take 4 times as long
  int ahead = 1;  // number of batches read ahead
  std::int64_t numbers = 0;
  std::uint64_t seed = 1;
};

constexpr double kStep_s = 1e-3;

// A replica that reads ahead and trains.
struct Rank final : ProtocolHost {
  Rank(const Schedule& of, int at, VirtualWorld& world)
      : schedule(of), rank(at), machine(at, of.ranks, 5, of.numbers), random(of.seed, "draws") {
    actor.emplace(
        world.transport(rank), machine, *this, [this] { return over && ready.empty() && !training; }, 2);
    actor->at(0, [this] { read(); });
  }
  double step_s() const {
    const auto draw = random.at(static_cast<std::uint64_t>(rank)).uniform(trained.size());
    return (rank == schedule.slow ? 4 : 1) * kStep_s * (0.9 + 0.2 * draw);
  }
  void read() {
    if (reading || over || std::ssize(ready) + (training ? 1 : 0) > schedule.ahead) return;
    reading = true;
    machine.set_trained(std::ssize(trained));
    actor->post(DrawMachine::kDraw);
  }
  void train() {
    if (training || ready.empty()) return;
    training = true;
    begun_s.push_back(actor->now_s());
    actor->at(actor->now_s() + step_s(), [this] {
      trained.push_back(ready.front());
      ready.erase(ready.begin());
      training = false;
      done_s = actor->now_s();
      train();
      read();
    });
  }
  void on_notified(Token, double now_s) override {
    reading = false;
    if (machine.drawn() == DrawMachine::kNone)
      over = true;
    else
      ready.push_back(machine.drawn());
    actor->at(now_s, [this] {
      train();
      read();
    });
  }
  void failed(std::exception_ptr error) override { std::rethrow_exception(error); }

  Schedule schedule;
  int rank;
  DrawMachine machine;
  HashRng random;
  bool reading = false, training = false, over = false;
  std::vector<std::int64_t> ready, trained;  // the first one of `ready` is in training
  std::vector<double> begun_s;
  double done_s = 0;
  std::optional<test::ProtocolActor> actor;
};

void run_schedule(const Schedule& schedule) {
  VirtualNetwork network{.between_hosts = {.jitter = 3}};
  network.seed = schedule.seed;
  network.eager_bytes = schedule.seed % 2 == 0 ? 0 : 1 << 20;
  const test::ProtocolRun<Rank> run(schedule.ranks, network, schedule);
  std::vector<int> times(static_cast<std::size_t>(schedule.numbers));
  std::vector<std::int64_t> trained;
  double first_s = 1e9, last_s = 0;
  for (const auto& rank : run.ranks()) {
    ECHELON_CHECK(std::is_sorted(rank->trained.begin(), rank->trained.end()), "rank {} goes back", rank->rank);
    for (const std::int64_t number : rank->trained) ++times[static_cast<std::size_t>(number)];
    trained.push_back(std::ssize(rank->trained));
    if (rank->rank != schedule.slow) first_s = std::min(first_s, rank->done_s);
    last_s = std::max(last_s, rank->done_s);
    ECHELON_CHECK_LE(rank->actor->wire().messages_sent,
                     static_cast<std::uint64_t>(2 * (schedule.numbers + schedule.ranks)));
  }
  for (const int each : times) ECHELON_CHECK_EQ(each, 1);
  const DrawMachine& owner = run.ranks()[0]->machine;
  ECHELON_CHECK_LE(owner.most_kept(), static_cast<std::size_t>(schedule.ahead) + 2);
  std::vector<std::int64_t> held;
  ECHELON_CHECK_EQ(owner.untrained(trained, held), schedule.numbers);
  ECHELON_CHECK(held.empty(), "{} batches are held", held.size());
  if (schedule.numbers < 40 * schedule.ranks || schedule.slow < 0) return;
  // A slow replica ends with one batch in training and those that it read ahead.
  ECHELON_CHECK_LE(last_s - first_s, 4.4 * kStep_s * (schedule.ahead + 2));
  const auto of_slow = static_cast<double>(trained[static_cast<std::size_t>(schedule.slow)]);
  const double fair = static_cast<double>(schedule.numbers) / (4 * schedule.ranks - 3);
  ECHELON_CHECK(of_slow > 0.8 * fair && of_slow < 1.2 * fair + schedule.ahead + 1, "{} of {} for the slow one", of_slow,
                fair);
}

Schedule schedule_of(std::uint64_t i) {
  Schedule schedule;
  schedule.seed = test::test_seed() + i;
  schedule.ranks = 1 + static_cast<int>(i % 17);
  schedule.slow = i % 3 == 0 && schedule.ranks > 1 ? static_cast<int>(i / 3) % schedule.ranks : -1;
  schedule.ahead = 1 + static_cast<int>(i % 4);
  const HashRng random(schedule.seed, "numbers");
  schedule.numbers = static_cast<std::int64_t>(random.below(0, i % 2 == 0 ? 20 : 1500));
  return schedule;
}

void run_schedules(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const Schedule schedule = schedule_of(i);
    CAPTURE(schedule.seed, schedule.ranks, schedule.slow, schedule.ahead, schedule.numbers);
    REQUIRE_NOTHROW(run_schedule(schedule));
  }
}

}  // namespace

TEST_CASE("a queue of batches: each drawn once, more by fast replicas, and all end", "[train][draws]") {
  run_schedules(200);
}

TEST_CASE("a queue of batches, 10,000 schedules", "[.][soak][draws]") { run_schedules(10000); }

TEST_CASE("what is open at any time is what no replica has trained", "[train][draws]") {
  // Rank 0 alone is driven by hand: its actions are counted, not carried out.
  struct Sink final : ProtocolActions {
    void send(Token, int, int, const void*, std::size_t, int) override { ++sent; }
    void receive(Token, int, int, void*, std::size_t) override {}
    void arm(Token, double) override {}
    void disarm(Token) override {}
    void wait_for(Token, int, int, std::int64_t) override {}
    void wait_over(Token) override {}
    void notify_host(Token) override { ++notified; }
    void finish() override { finished = true; }
    int sent = 0, notified = 0;
    bool finished = false;
  } sink;
  DrawMachine machine(0, 1, 5, 10);
  machine.on({.kind = ProtocolEvent::Kind::started}, sink);
  std::vector<std::int64_t> drawn;
  std::int64_t trained = 0;
  const HashRng random(test::test_seed(), "open");
  for (std::uint64_t i = 0; machine.drawn() != DrawMachine::kNone || i == 0; ++i) {
    machine.set_trained(trained);
    machine.on({.kind = ProtocolEvent::Kind::posted, .token = DrawMachine::kDraw}, sink);
    if (machine.drawn() != DrawMachine::kNone) drawn.push_back(machine.drawn());
    while (trained < std::ssize(drawn) && random.below(2 * i + static_cast<std::uint64_t>(trained), 2) == 0) ++trained;
    std::vector<std::int64_t> held;
    REQUIRE(machine.untrained({trained}, held) == std::ssize(drawn));
    REQUIRE(held == std::vector<std::int64_t>(drawn.begin() + trained, drawn.end()));
  }
  CHECK(drawn.size() == 10);
  CHECK(sink.finished);
}

TEST_CASE("rank 0 waits for requests of 4,096 replicas with one receive", "[train][draws][large_k]") {
  struct Sink final : ProtocolActions {
    void send(Token, int, int, const void*, std::size_t, int) override {}
    void receive(Token, int peer, int, void*, std::size_t) override {
      CHECK(peer == kAnySource);
      ++receives;
    }
    void arm(Token, double) override {}
    void disarm(Token) override {}
    void wait_for(Token, int, int, std::int64_t) override {}
    void wait_over(Token) override {}
    void notify_host(Token) override {}
    void finish() override {}
    int receives = 0;
  } sink;
  DrawMachine machine(0, 4096, 5, 10);
  machine.on({.kind = ProtocolEvent::Kind::started}, sink);
  CHECK(sink.receives == 1);
}

}  // namespace echelon
