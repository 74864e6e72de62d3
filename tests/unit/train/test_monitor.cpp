// SPDX-License-Identifier: Apache-2.0
// The monitors of a run on records of steps: plateaus, slow ranks, growing memory, and a job that ends too early.
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "base/process.hpp"
#include "train/hooks/monitor.hpp"

namespace echelon {
namespace {

using Catch::Contains;

struct StillClock final : Clock {
  double at_s = 0;
  double now_s() const override { return at_s; }
};

struct Bench {
  explicit Bench(int ranks, std::vector<int> of = {}) {
    for (int r = 0; r < ranks; ++r) hosts.push_back("n" + std::to_string(r / 2));
    parts = of.empty() ? std::vector<int>(static_cast<std::size_t>(ranks), 0) : of;
    config.monitor.slow_steps = 5;
  }
  MonitorHook& hook() {
    if (!hook_) {
      hook_.emplace(MonitorSetting{.config = config,
                                   .hosts = hosts,
                                   .parts = parts,
                                   .total_steps = 1000,
                                   .left_s = [this] { return left_s; },
                                   .warn = [this](const std::string& text) { told.push_back(text); }},
                    clock);
      hook_->run_begin(0);
    }
    return *hook_;
  }
  // Records a step in which the ranks computed for these times and had this memory.
  void step(const std::vector<double>& compute_s, const std::vector<double>& rss_mb = {}) {
    StepRecord record;
    record.step = ++steps;
    for (std::size_t r = 0; r < compute_s.size(); ++r)
      record.ranks.push_back({.compute_s = compute_s[r], .rss_mb = rss_mb.empty() ? 100 : rss_mb[r]});
    hook().step_end(record);
  }
  void evaluation(double loss) { hook().take(++steps, loss); }

  Config config;
  std::vector<std::string> hosts;
  std::vector<int> parts;
  std::vector<std::string> told;
  double left_s = std::numeric_limits<double>::infinity();
  StillClock clock;
  std::int64_t steps = 0;

 private:
  std::optional<MonitorHook> hook_;
};

}  // namespace

TEST_CASE("a rank that computes longer than the others is named once, with host, step and times", "[train][monitor]") {
  Bench bench(3);
  for (int i = 0; i < 10; ++i) bench.step({0.01, 0.011, 0.012});
  CHECK(bench.told.empty());
  for (int i = 0; i < 20; ++i) bench.step({0.01, 0.011, 0.024 + 0.001 * (i % 3)});
  REQUIRE(bench.told.size() == 1);
  CHECK_THAT(bench.told[0],
             Contains("rank 2 on n1 is slow at step 15: it computes 25.00 ms per step, the median rank 11.00 ms"));
  CHECK_FALSE(bench.hook().asks_to_requeue());
  for (int i = 0; i < 5; ++i) bench.step({0.01, 0.011, 0.012});
  for (int i = 0; i < 5; ++i) bench.step({0.01, 0.011, 0.03});
  CHECK(bench.told.size() == 2);  // it had recovered meanwhile
}

TEST_CASE("one slow step, short steps, other parts of a model and given shares make no rank slow", "[train][monitor]") {
  Bench spikes(2), shorts(2), parts(2, {0, 1}), shares(2);
  shares.config.batch.shares = {1, 4};
  for (int i = 0; i < 30; ++i) {
    spikes.step({0.01, i % 3 == 0 ? 0.5 : 0.01});
    shorts.step({0.0005, 0.002});
    parts.step({0.01, 0.05});
    shares.step({0.01, 0.04});
  }
  for (const Bench* bench : {&spikes, &shorts, &parts, &shares}) CHECK(bench->told.empty());
}

TEST_CASE("a rank that becomes slower than it was is named where it has no peer, and can stop the run",
          "[train][monitor]") {
  Bench bench(2, {0, 1});
  bench.config.monitor.slow_rank = Watch::stop;
  for (int i = 0; i < 10; ++i) bench.step({0.01, 0.05});
  for (int i = 0; i < 5; ++i) bench.step({0.01, 0.11});
  REQUIRE(bench.told.size() == 1);
  CHECK_THAT(bench.told[0], Contains("rank 1 on n0") && Contains("before it took 50.00 ms"));
  CHECK(bench.hook().asks_to_requeue());
  CHECK(bench.hook().why() == bench.told[0]);
  Bench off(2);
  off.config.monitor.slow_rank = Watch::off;
  for (int i = 0; i < 20; ++i) off.step({0.01, 0.11});
  CHECK(off.told.empty());
}

TEST_CASE("memory that climbs is told at each further growth, a jump at the start is not", "[train][monitor]") {
  Bench climbs(2), jumps(2), far(2);
  for (Bench* bench : {&climbs, &jumps, &far}) bench->config.monitor.memory_growth_mb = 100;
  for (int i = 0; i < 1000; ++i) {
    climbs.step({0.01, 0.01}, {100, 100 + 0.3 * i});
    jumps.step({0.01, 0.01}, {100, i < 20 ? 100.0 : 199.0});
    far.step({0.01, 0.01}, {100, i < 12 ? 100.0 : 190.0 + 0.011 * i});
  }
  REQUIRE(climbs.told.size() == 2);
  CHECK_THAT(climbs.told[0], Contains("rank 1 on n0: memory grows: 203 MiB at step 344, 102 MiB before"));
  CHECK(jumps.told.empty());
  CHECK(far.told.empty());
}

TEST_CASE("memory of this process that is really taken is seen", "[train][monitor][resident]") {
  Bench bench(1);
  bench.config.monitor.memory_growth_mb = 64;
  bench.config.monitor.memory = Watch::stop;
  std::vector<std::vector<char>> taken;
  for (int i = 0; i < 400 && bench.told.empty(); ++i) {
    if (i >= 10) taken.emplace_back(4 << 20, static_cast<char>(i));
    bench.step({0.01}, {resident_mb()});
  }
  REQUIRE(bench.told.size() == 1);
  CHECK(taken.size() >= 15);  // more than that where this process has free memory from other tests
  CHECK(bench.hook().asks_to_requeue());
}

TEST_CASE("a throttled GPU is told once for each time, with its reason, or stops the run", "[train][monitor]") {
  const Watch watch = GENERATE(Watch::off, Watch::warn, Watch::stop);
  Bench bench(2);
  bench.config.monitor.throttling = watch;
  for (const double reasons : {0.0, 1.0, 1.0, 0.0, 3.0}) {
    StepRecord record;
    record.step = ++bench.steps;
    record.ranks = {{.compute_s = 0.01}, {.compute_s = 0.01, .throttled = reasons}};
    bench.hook().step_end(record);
  }
  REQUIRE(bench.told.size() == (watch == Watch::off ? 0 : 2));
  CHECK(bench.hook().asks_to_requeue() == (watch == Watch::stop));
  if (watch == Watch::off) return;
  CHECK_THAT(bench.told[0], Contains("rank 1 on n0: the GPU is throttled at step 2 by its temperature (monitor."));
  CHECK_THAT(bench.told[1], Contains("at step 5 by its temperature and the host's power brake"));
}

TEST_CASE("a loss that no longer falls is told, or finishes the run", "[train][monitor]") {
  const Watch watch = GENERATE(Watch::off, Watch::warn, Watch::stop);
  Bench bench(1);
  bench.config.monitor.plateau = watch;
  bench.config.monitor.plateau_evaluations = 3;
  bench.config.monitor.plateau_change = 0.01;
  for (const double loss : {2.0, 1.0, 0.995, 1.1, 0.98, 0.979, 0.975}) bench.evaluation(loss);
  CHECK(bench.told.empty());
  bench.hook().take(bench.steps, 0.97);  // the same evaluation, told a second time
  CHECK(bench.told.empty());
  bench.evaluation(0.972);
  CHECK(bench.told.size() == (watch == Watch::off ? 0 : 1));
  CHECK(bench.hook().ends_run() == (watch == Watch::stop));
  CHECK_FALSE(bench.hook().asks_to_requeue());
  if (watch == Watch::off) return;
  CHECK_THAT(bench.told[0], Contains("plateau at step 8: the loss is 0.972, and 3 evaluations in a row did not improve "
                                     "on the best, 0.98, by 0.01 of it"));
}

TEST_CASE("a run that would end after its job is told once", "[train][monitor]") {
  Bench bench(1);
  bench.left_s = 3600;
  const auto steps_of = [&](int steps, double each_s) {
    for (int i = 0; i < steps; ++i) {
      bench.clock.at_s += each_s;
      bench.step({0.01});
    }
  };
  steps_of(100, 3);
  CHECK(bench.told.empty());
  bench.left_s = 2000;
  steps_of(100, 3);
  REQUIRE(bench.told.size() == 1);
  CHECK_THAT(bench.told[0], Contains("out of time: 850 of 1,000 steps need") && Contains("the job ends in"));
}

}  // namespace echelon
