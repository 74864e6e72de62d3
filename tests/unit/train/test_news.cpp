// SPDX-License-Identifier: Apache-2.0
// News of steps on virtual time: while one rank steps, all others hear of it, whichever rank it is and however many
// others step too; once nobody steps, nobody hears anything; and few messages are sent.
#include <catch2/catch.hpp>

#include "base/check.hpp"
#include "comm/virtual/world.hpp"
#include "tests/support/protocol_world.hpp"
#include "tests/support/schedules.hpp"
#include "train/control/news.hpp"

namespace echelon {
namespace {

constexpr double kInterval_s = 1e-3, kEnd_s = 50e-3;

struct Schedule {
  int ranks = 1;
  std::vector<char> steps;  // one per rank
  std::vector<double> step_s;
  std::uint64_t seed = 1;
};

// Listens until the host posts kEnd, as on an engine until the machine is taken off.
struct Listening final : Machine {
  static constexpr Token kEnd = 99;
  explicit Listening(StepNews of) : news(std::move(of)) {}
  void on(const ProtocolEvent& event, ProtocolActions& actions) override {
    const bool ends = event.kind == ProtocolEvent::Kind::posted && event.token == kEnd;
    ends ? actions.finish() : news.on(event, actions);
  }
  StepNews news;
};

// A rank that steps until kEnd_s, or does not step, and observes until a while later.
struct Rank final : ProtocolHost {
  Rank(const Schedule& schedule, int at, VirtualWorld& world)
      : rank(at),
        step_s(schedule.step_s[static_cast<std::size_t>(at)]),
        news(StepNews(at, schedule.ranks, 5, kInterval_s)) {
    actor.emplace(
        world.transport(rank), news, *this, [this] { return over; }, 2);
    if (schedule.steps[static_cast<std::size_t>(rank)]) actor->at(step_s, [this] { step(); });
    actor->at(2 * kEnd_s, [this] {
      over = true;
      actor->post(Listening::kEnd);
    });
  }
  void step() {
    if (actor->now_s() > kEnd_s) return;
    if (actor->now_s() - told_s >= kInterval_s) {
      told_s = actor->now_s();
      actor->post(StepNews::kStepped);
    }
    actor->at(actor->now_s() + step_s, [this] { step(); });
  }
  void on_notified(Token, double now_s) override { heard_s.push_back(now_s); }
  void failed(std::exception_ptr error) override { std::rethrow_exception(error); }

  int rank;
  double step_s, told_s = -1;
  bool over = false;
  std::vector<double> heard_s;
  Listening news;
  std::optional<test::ProtocolActor> actor;
};

std::uint64_t run_schedule(const Schedule& schedule, double most_s) {
  VirtualNetwork network{.between_hosts = {.jitter = 3}};
  network.seed = schedule.seed;
  const test::ProtocolRun<Rank> run(schedule.ranks, network, schedule);
  std::uint64_t messages = 0;
  for (const auto& rank : run.ranks()) {
    messages += rank->actor->wire().messages_sent;
    double before_s = 0;
    for (const double heard_s : rank->heard_s) {
      ECHELON_CHECK_LE(heard_s - before_s, most_s, "rank {} heard nothing for long", rank->rank);
      before_s = heard_s;
    }
    ECHELON_CHECK(before_s > kEnd_s - most_s && before_s < kEnd_s + most_s, "rank {} heard last at {} s", rank->rank,
                  before_s);
  }
  return messages;
}

Schedule drawn(std::uint64_t seed) {
  const HashRng random(seed, "news");
  Schedule schedule{.ranks = 2 + static_cast<int>(random.below(0, 16)), .steps = {}, .step_s = {}, .seed = seed};
  const auto slow = random.below(1, static_cast<std::uint64_t>(schedule.ranks));
  for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(schedule.ranks); ++r) {
    schedule.steps.push_back(r == slow || random.below(100 + r, 2) == 0);
    schedule.step_s.push_back(r == slow ? 4 * kInterval_s : kInterval_s * (0.1 + random.uniform(200 + r)));
  }
  return schedule;
}

}  // namespace

TEST_CASE("whoever steps, all ranks hear of it, and of nothing once nobody does", "[train][news]") {
  // Allows for a step of the slow rank, an interval in which news are dropped, and the way up and down the tree.
  test::run_schedules(200, [](std::uint64_t seed) { run_schedule(drawn(seed), 6 * kInterval_s); });
}

TEST_CASE("news of steps are at most 4 (k - 1) messages an interval", "[train][news]") {
  for (const int k : {2, 5, 16}) {
    const auto ranks = static_cast<std::size_t>(k);
    const Schedule all{
        .ranks = k, .steps = std::vector<char>(ranks, 1), .step_s = std::vector<double>(ranks, 1e-4), .seed = 3};
    const std::uint64_t messages = run_schedule(all, 6 * kInterval_s);
    CHECK(messages <= static_cast<std::uint64_t>(4 * (k - 1) * (kEnd_s / kInterval_s + 2)));
    CHECK(messages >= static_cast<std::uint64_t>((k - 1) * (kEnd_s / kInterval_s - 2)));
  }
}

}  // namespace echelon
