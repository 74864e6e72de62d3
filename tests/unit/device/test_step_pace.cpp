// SPDX-License-Identifier: Apache-2.0
// Ranks that compute and are paced, on a clock that moves only while an op computes or the rank sleeps.
#include <catch2/catch.hpp>
#include <cmath>

#include "device/paced/step_pace.hpp"
#include "report/figures.hpp"
#include "tests/support/image_models.hpp"
#include "tests/support/random.hpp"
#include "tests/support/trainer.hpp"

namespace echelon {
namespace {

struct FakeTime final : Clock, Sleeper {
  double now_s() const override { return now; }
  double sleep(double seconds) const override {
    ++sleeps;
    now += seconds + late;
    return seconds + late;
  }
  mutable double now = 0;
  mutable int sleeps = 0;
  double late = 0;  // delay of every sleep
};

// Runs a step of ops that take `busy` seconds each and should take `shares`; returns when each op ended.
std::vector<double> step(StepPace& pace, FakeTime& time, std::int64_t number, const std::vector<double>& busy,
                         const std::vector<double>& shares) {
  std::vector<double> ends;
  const double start = time.now;
  pace.begin_step(number);
  for (std::size_t i = 0; i < busy.size(); ++i) {
    pace.run(shares[i], [&] { time.now += busy[i]; });
    ends.push_back(time.now - start);
  }
  pace.end_step();
  return ends;
}

const StepPaceOptions kTenth{.step_s = 0.1};

}  // namespace

TEST_CASE("a paced step ends at its pace, and its ops at their shares of it", "[device][pace]") {
  const HashRng random(test::test_seed(), "pace");
  for (std::uint64_t round = 0; round < 200; ++round) {
    const auto ops = 1 + random.at(round).below(0, 300);
    std::vector<double> shares, busy;
    double all = 0;
    for (std::uint64_t i = 0; i < ops; ++i) all += shares.emplace_back(0.01 + random.at(round).uniform(2 * i + 1));
    for (double& share : shares) share *= 0.1 / all;
    for (std::uint64_t i = 0; i < ops; ++i) busy.push_back(shares[i] * random.at(round).uniform(2 * i + 2));
    FakeTime time;
    time.late = round % 2 == 0 ? 0 : 1e-5;
    StepPace pace(kTenth, time, time);
    for (int number = 0; number < 3; ++number) {
      const double start = time.now;
      const std::vector<double> ends = step(pace, time, number, busy, shares);
      CAPTURE(round, ops, number);
      CHECK(time.now - start == Approx(0.1).epsilon(1e-9).margin(2e-5));
      double share = 0;
      for (std::size_t i = 0; i < ends.size(); ++i) {
        share += shares[i];
        REQUIRE(ends[i] > share - 0.1 / 60);
        REQUIRE(ends[i] < share + 2e-5);
      }
    }
    CHECK(time.sleeps <= 3 * 65);
    CHECK(pace.record().over_steps == 0);
    CHECK(pace.record().worst < 1.001);
    CHECK(pace.record().pace_s == Approx(0.3));
  }
}

TEST_CASE("an op beyond its share shortens the sleeps after it; a step beyond its pace is counted", "[device][pace]") {
  FakeTime time;
  StepPace pace(kTenth, time, time);
  step(pace, time, 0, {0.05, 0, 0}, {0.02, 0.05, 0.03});
  CHECK(time.now == Approx(0.1));
  CHECK(pace.record().over_steps == 0);
  step(pace, time, 1, {0.2, 0.01}, {0.05, 0.05});
  CHECK(time.now == Approx(0.31));
  CHECK(pace.record().over_steps == 1);
  CHECK(pace.record().worst == Approx(2.1));
  step(pace, time, 2, {0, 0}, {0.05, 0.05});  // at most 5 ms of the delay are made up for
  CHECK(time.now == Approx(0.405));
  step(pace, time, 3, {0, 0.104}, {0.05, 0.05});  // this step's sleep is already used up
  CHECK(pace.record().over_steps == 2);
  CHECK(pace.record().worst == Approx(2.1));
}

TEST_CASE("factors of ranks and steps are those given and those drawn by the seed", "[device][pace]") {
  const auto pace_of = [](StepPaceOptions options, std::int64_t number) {
    FakeTime time;
    StepPace pace(std::move(options), time, time);
    step(pace, time, number, {0}, {0.1});
    return time.now;
  };
  CHECK(pace_of({.step_s = 0.1, .factor = 4}, 3) == Approx(0.4));
  const StepPaceOptions drawn{.step_s = 0.1, .jitter = 0.2, .seed = 5, .rank = 2};
  CHECK(pace_of(drawn, 3) == pace_of(drawn, 3));
  std::vector<double> steps, ranks;
  for (int i = 0; i < 2001; ++i) {
    steps.push_back(std::log(pace_of(drawn, i) / 0.1));
    ranks.push_back(std::log(pace_of({.step_s = 0.1, .spread = 0.5, .rank = i}, i) / 0.1));
  }
  for (const auto& [logs, deviation] : {std::pair(steps, 0.2), std::pair(ranks, 0.5)}) {
    const Quartiles q = quartiles_of(logs);
    CHECK(std::abs(q.median) < 0.1 * deviation);
    CHECK(q.p75 - q.p25 == Approx(1.349 * deviation).epsilon(0.12));
  }
}

TEST_CASE("a program at a pace gives the same bits, and its gradients one after another over the step",
          "[device][pace][model]") {
  const Graph graph = test::small_cnn();
  constexpr std::int64_t kBatch = 3;
  test::Trainer plain(graph, kBatch), paced(graph, kBatch);
  FakeTime time;
  for (const double step_s : {0.1, 0.0}) {  // 0: no step time, so ops keep their own times
    StepPace pace({.step_s = step_s, .times = {.gflops = 1e-3, .gb_per_s = 1}}, time, time);
    paced.program().set_pace(pace, 1);
    double all_s = 0;
    for (const OpReport& op : paced.program().ops()) all_s += OpTimes{.gflops = 1e-3, .gb_per_s = 1}.seconds(op.spec);
    const double expected_s = step_s > 0 ? step_s : all_s;
    const test::PlainBatch batch = test::hashed_batch(test::form_of(graph), 7, kBatch, 1);
    plain.gradients(batch, kBatch, true);
    const double start = time.now;
    std::vector<double> ready;
    pace.begin_step(0);
    paced.gradients(batch, kBatch, true, [&](ArenaRange) { ready.push_back((time.now - start) / expected_s); });
    pace.end_step();
    CHECK(paced.read_gradients() == plain.read_gradients());
    CHECK(time.now - start == Approx(expected_s).epsilon(1e-3));
    REQUIRE(ready.size() >= 4);
    CHECK(ready.front() > 0.2);
    CHECK(ready.front() < 0.6);
    CHECK(ready.back() > ready.front() + 0.3);
    CHECK(ready.back() <= 1.001);
  }
}

}  // namespace echelon
