// SPDX-License-Identifier: Apache-2.0
// Meetings of asynchronous replicas, on virtual time: in any schedule all ranks hear the same calls in the same order,
// each wish is answered, epochs and the end are called once, and no rank's pace depends on another's.
#include <catch2/catch.hpp>
#include <cmath>

#include "base/check.hpp"
#include "comm/virtual/world.hpp"
#include "tests/support/protocol_world.hpp"
#include "tests/support/random.hpp"
#include "train/control/calls.hpp"

namespace echelon {
namespace {

constexpr int kSteps = 30, kStepsAnEpoch = 10;
constexpr double kStep_s = 100e-6, kSlowStep_s = 20e-3;

struct Schedule {
  int ranks = 1;
  int slow = -1;    // this rank's steps take kSlowStep_s
  int wishes = -1;  // this rank asks for a checkpoint at step 7; -1: nobody does
  std::uint64_t seed = 1;
};

// A replica with a weight of 2 per step, which attends each meeting at its next step boundary.
struct Rank final : ProtocolHost {
  Rank(const Schedule& of, int at, VirtualWorld& world)
      : schedule(of), rank(at), calls(at, of.ranks, 5), random(of.seed, "calls") {
    actor.emplace(
        world.transport(rank), calls, *this, [this] { return ended; }, 2);
    epoch_weight = 2.0 * kStepsAnEpoch * of.ranks;
    actor->at(0, [this] { step(); });
  }
  double pause_s() const {
    const auto at = random.at(static_cast<std::uint64_t>(rank)).uniform(static_cast<std::uint64_t>(steps));
    return (rank == schedule.slow ? kSlowStep_s : kStep_s) * (0.5 + at);
  }
  void step() {
    if (steps == kSteps) return;
    const double begun_s = actor->now_s();
    actor->at(begun_s + pause_s(), [this, begun_s] {
      busy_s += actor->now_s() - begun_s;
      ++steps;
      own.weight += 2;
      attend();
      if (rank == schedule.wishes && steps == 7) own.wishes = 4, wished_s = actor->now_s();
      if (steps == kSteps) own.finished = 1, done_s = actor->now_s();
      tell();
      step();
    });
  }
  void tell() {
    calls.report(own, {.epoch = epoch_weight});
    actor->post(ControlCalls::kReport);
  }
  void attend() {
    for (; own.meetings < static_cast<double>(heard.size()); own.meetings += 1) {
      const MeetingCall& call = heard[static_cast<std::size_t>(own.meetings)];
      if ((call.reasons & kMeetingEpoch) != 0) epoch_weight += 2.0 * kStepsAnEpoch * schedule.ranks;
      if ((call.reasons & kMeetingEnd) != 0) ended = true;
      own.wishes = 0;
    }
  }
  void on_notified(Token, double now_s) override {
    ECHELON_CHECK_EQ(calls.call().number, static_cast<std::int64_t>(heard.size()) + 1, "a call was missed");
    heard.push_back(calls.call());
    if (wished_s > 0 && answered_s < 0) answered_s = now_s;  // a meeting for another reason answers it too
    if (steps < kSteps) return;
    actor->at(now_s, [this] {  // it waits for nothing but calls
      attend();
      if (!ended) tell();
    });
  }
  void failed(std::exception_ptr error) override { std::rethrow_exception(error); }

  Schedule schedule;
  int rank, steps = 0;
  ControlCalls calls;
  HashRng random;
  Report own;
  double epoch_weight = 0, busy_s = 0, done_s = -1, wished_s = -1, answered_s = -1;
  bool ended = false;
  std::vector<MeetingCall> heard;
  std::optional<test::ProtocolActor> actor;
};

int count(const std::vector<MeetingCall>& calls, std::uint32_t reason) {
  int n = 0;
  for (const MeetingCall& call : calls) n += (call.reasons & reason) != 0 ? 1 : 0;
  return n;
}

// Returns how many meetings a wish caused.
int run_schedule(const Schedule& schedule) {
  VirtualNetwork network{.between_hosts = {.jitter = 3}};
  network.seed = schedule.seed;
  network.eager_bytes = schedule.seed % 2 == 0 ? 0 : 1 << 20;
  const test::ProtocolRun<Rank> run(schedule.ranks, network, schedule);
  const std::vector<MeetingCall>& first = run.ranks()[0]->heard;
  ECHELON_CHECK_EQ(count(first, kMeetingEpoch), kSteps / kStepsAnEpoch);
  ECHELON_CHECK_EQ(count(first, kMeetingEnd), 1);
  ECHELON_CHECK_EQ(first.back().reasons & kMeetingEnd, std::uint32_t{kMeetingEnd});
  const int called = count(first, kMeetingWish);  // none if an epoch ends just then
  ECHELON_CHECK_LE(called, schedule.wishes >= 0 ? 1 : 0);
  ECHELON_CHECK_EQ(count(first, kMeetingNotFinite), 0);
  for (const auto& rank : run.ranks()) {
    ECHELON_CHECK_EQ(rank->heard.size(), first.size());
    for (std::size_t i = 0; i < first.size(); ++i)
      ECHELON_CHECK(rank->heard[i].number == first[i].number && rank->heard[i].reasons == first[i].reasons);
    // Each rank's steps take their own time, however slow another rank is.
    ECHELON_CHECK(std::abs(rank->done_s - rank->busy_s) < 1e-9, "rank {} waited", rank->rank);
    if (rank->rank == schedule.wishes)
      ECHELON_CHECK(rank->answered_s > 0 && rank->answered_s - rank->wished_s < kSlowStep_s / 4, "the wish took {} s",
                    rank->answered_s - rank->wished_s);
  }
  return called;
}

}  // namespace

TEST_CASE("asynchronous replicas: the same calls everywhere, and nobody waits", "[train][control]") {
  int wishes = 0, called = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    Schedule schedule;
    schedule.seed = test::test_seed() + i;
    schedule.ranks = 1 + static_cast<int>(i % 17);
    schedule.slow = i % 3 == 0 && schedule.ranks > 1 ? static_cast<int>(i / 3) % schedule.ranks : -1;
    schedule.wishes = i % 2 == 0 ? static_cast<int>(i / 2) % schedule.ranks : -1;
    // Rank 0 attends at its own next boundary, so a wish waits for that and for a meeting before it if rank 0 is slow.
    if (schedule.slow == 0) schedule.wishes = -1;
    CAPTURE(schedule.seed, schedule.ranks, schedule.slow, schedule.wishes);
    REQUIRE_NOTHROW(called += run_schedule(schedule));
    wishes += schedule.wishes >= 0 ? 1 : 0;
  }
  CHECK(called > wishes * 3 / 4);
}

TEST_CASE("a wish that a meeting has answered calls no other", "[train][control]") {
  const Report before{.weight = 2, .meetings = 0, .wishes = 4}, after{.weight = 4, .meetings = 1, .wishes = 1};
  CHECK(before.merged(after).wishes == 1);
  CHECK(after.merged(before).wishes == 1);
  CHECK(before.merged(after).weight == 6);
  CHECK(before.merged({.wishes = 2}).wishes == 6);
  CHECK(Report{.not_finite_rank = 3}.merged({.not_finite_rank = 2}).not_finite_rank == 2);
  CHECK(Report{}.merged({.not_finite_rank = 2}).not_finite_rank == 2);
}

TEST_CASE("ranks that have finished several epochs at once meet for each of them before the end", "[train][calls]") {
  struct Nothing final : ProtocolActions {  // a single rank sends nothing
    void send(Token, int, int, const void*, std::size_t, int) override { FAIL("a message"); }
    void receive(Token, int, int, void*, std::size_t) override { FAIL("a message"); }
    void arm(Token, double) override {}
    void disarm(Token) override {}
    void wait_for(Token, int, int, std::int64_t) override {}
    void wait_over(Token) override {}
    void notify_host(Token) override {}
    void finish() override {}
  } actions;
  ControlCalls calls(0, 1, 5);
  for (int epoch = 1; epoch <= 3; ++epoch) {
    calls.report({.weight = 6, .finished = 1, .meetings = epoch - 1.0}, {.epoch = 2.0 * epoch, .last = epoch == 3});
    calls.on({.kind = ProtocolEvent::Kind::posted, .token = ControlCalls::kReport}, actions);
    CHECK(calls.call().number == epoch);
    CHECK(calls.call().reasons == (epoch < 3 ? kMeetingEpoch : kMeetingEpoch | kMeetingEnd));
  }
}

}  // namespace echelon
