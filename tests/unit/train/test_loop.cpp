// SPDX-License-Identifier: Apache-2.0
// The loop around steps that a test makes up: what it passes on, what it counts, and when it stops.
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "comm/local/local.hpp"
#include "config/parse.hpp"
#include "tests/support/ranks.hpp"
#include "tests/unit/data/shards.hpp"
#include "tests/unit/h5/folder.hpp"
#include "train/loop.hpp"

namespace echelon {
namespace {

// A step advances by the given number of steps; if that is more than one, the replica was too late for those between.
struct Jumps final : Stepper {
  std::vector<std::int64_t> lengths;
  std::vector<StepInfo> infos;
  StepResult run(const StepInfo& info, const std::function<void(const LossSums&)>& on_losses) override {
    StepResult result;
    result.losses = {.loss = 3, .correct = 0, .weight = 1.5};
    on_losses(result.losses);
    const std::int64_t length = lengths[infos.size() % lengths.size()];
    infos.push_back(info);
    result.outcome.next_step = info.step + length;
    result.outcome.contributed = length == 1;
    return result;
  }
};

struct Watch final : Hook {
  std::vector<StepRecord> steps;
  std::vector<EpochRecord> epochs;
  bool finished = false;
  int waits = 0;
  void waiting() override { ++waits; }
  void step_end(const StepRecord& record) override { steps.push_back(record); }
  void epoch_end(EpochRecord& record) override { epochs.push_back(record); }
  void run_end(bool with) override { finished = with; }
};

struct Run {
  test::Folder folder;
  Engine engine{std::move(make_local_world(1)[0])};
  Group group{engine, 0};
  Control control;
  Config config;
  std::optional<RunPlan> plan;
  RunState state;
  PhaseBoard phase;
  Jumps jumps;
  Watch watch;

  // Has 10 steps an epoch and 3 epochs.
  explicit Run(const Progress& progress = {}) : control(engine, 1, progress) {
    test::write_shards(folder.path(), {80});
    config = parse_config(
        "[model]\nlayers = [{type = \"flatten\"}, {type = \"dense\", units = 10}]\n[batch]\nglobal = "
        "8\n[train]\nepochs = 3\n[data]\ntrain = \"" +
            folder.path() + "\"\n",
        "test.toml");
  }
  void make_plan() { plan.emplace(plan_run(config, Mesh(1), {}, open_inputs(config))); }
  Ending go() { return run_loop({config, *plan, 0, jumps, group, control, state, phase, {&watch}}); }
};

constexpr double kServes = -1;

// Ranks are threads, each with a replica whose steps take the given time, or a server (kServes).
struct Paces final : Stepper {
  double step_s = 0;
  int rank = 0;
  std::int64_t steps = 0;
  double done_s = 0;
  StepResult run(const StepInfo& info, const std::function<void(const LossSums&)>& on_losses) override {
    StepResult result;
    // The loss per sample of rank r at step s is 1 + r + s.
    result.losses = {.loss = 2.0 * static_cast<double>(1 + rank + info.step), .correct = 0, .weight = 2};
    on_losses(result.losses);
    if (step_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(step_s));
    result.outcome.next_step = info.step + 1;
    ++steps;
    done_s = now_s();
    return result;
  }
  bool trains() const override { return step_s >= 0; }
};

struct RankRun {
  Watch watch;
  Paces paces;
  RunState state;
  Ending ending = Ending::interrupted;
};

// Trains 3 epochs of 10 steps of 3 replicas x 2 samples.
std::vector<RankRun> run_three(const Progress& progress, const std::vector<double>& step_s,
                               const std::string& more = "") {
  const test::Folder folder;
  test::write_shards(folder.path(), {60});
  const Config config = parse_config(
      "[model]\nlayers = [{type = \"flatten\"}, {type = \"dense\", units = 10}]\n[batch]\nglobal = 6\n"
      "[train]\nepochs = 3\n[data]\ntrain = \"" +
          folder.path() + "\"\n" + more,
      "test.toml");
  std::vector<RankRun> runs(3);
  test::run_ranks(3, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    Group group(engine, 0);
    Control control(engine, 1, progress);
    const RunPlan plan = plan_run(config, Mesh(3), {}, open_inputs(config));
    ECHELON_CHECK_EQ(plan.total_steps, 30);
    RankRun& run = runs[static_cast<std::size_t>(engine.rank())];
    run.paces.rank = engine.rank();
    run.paces.step_s = step_s[static_cast<std::size_t>(engine.rank())];
    PhaseBoard phase;
    run.ending = run_loop({config, plan, engine.rank(), run.paces, group, control, run.state, phase, {&run.watch}});
    group.barrier();
  });
  return runs;
}

}  // namespace

TEST_CASE("the loop joins the step that the strategy names", "[train][loop]") {
  Run run;
  run.make_plan();
  REQUIRE(run.plan->steps_per_epoch == 10);
  run.jumps.lengths = {1, 1, 4, 1, 13};
  REQUIRE(run.go() == Ending::finished);
  std::int64_t step = 0;
  for (std::size_t i = 0; i < run.jumps.infos.size(); ++i) {
    const StepInfo& info = run.jumps.infos[i];
    CHECK(info.step == step);
    CHECK((info.epoch == step / 10 && info.step_in_epoch == step % 10));
    step += run.jumps.lengths[i % run.jumps.lengths.size()];
    CHECK(run.watch.steps[i].step == step);
    CHECK(run.watch.steps[i].loss == 2);
    CHECK(run.watch.steps[i].outcome.contributed == (run.jumps.lengths[i % 5] == 1));
  }
  CHECK(step >= 30);
  CHECK(run.state.step == step);
  CHECK(run.watch.finished);
  REQUIRE(run.watch.epochs.size() == 2);  // the first epoch ended inside the jump over 13 steps
  CHECK(run.watch.epochs[0].epoch == 2);
  CHECK(run.watch.epochs[1].last);
}

TEST_CASE("a strategy whose next step is not after the last one is a defect", "[train][loop]") {
  Run run;
  run.make_plan();
  run.jumps.lengths = {0};
  CHECK_THROWS_WITH(run.go(), Catch::Contains("leads back"));
}

TEST_CASE("a replica that meets others by period may leave steps out, and counts what it drops", "[train][loop]") {
  Run run({.meets = Progress::Meets::by_period, .period = 5});
  run.make_plan();
  run.jumps.lengths = {1, 4, 2, 3};
  REQUIRE(run.go() == Ending::finished);
  REQUIRE(run.watch.steps.size() == 12);
  for (std::size_t i = 0; i < 12; ++i) {
    const StepRecord& record = run.watch.steps[i];
    const std::int64_t length = run.jumps.lengths[i % 4];
    CHECK(record.meets == (record.step % 5 == 0));
    CHECK(record.ends_epoch == (record.step % 10 == 0));
    CHECK(record.steps_left_out == length - 1);
    CHECK(record.dropped_samples == (length == 1 ? 0 : 8 * length));
    // Losses of dropped gradients enter no mean.
    if (record.meets) CHECK((i % 4 == 1 ? record.loss == 2 : std::isnan(record.loss)));
  }
  CHECK(run.watch.epochs.size() == 3);
  CHECK(run.state.step == 30);
}

TEST_CASE("a strategy that leads a replica past a meeting is a defect", "[train][loop]") {
  Run run({.meets = Progress::Meets::by_period, .period = 5});
  run.make_plan();
  run.jumps.lengths = {1, 5};
  CHECK_THROWS_WITH(run.go(), Catch::Contains("past a meeting"));
}

TEST_CASE("replicas that meet by period know all losses there, and their own between", "[train][loop]") {
  const auto runs = run_three({.meets = Progress::Meets::by_period, .period = 4}, {0, 0, 0});
  for (std::size_t r = 0; r < 3; ++r) {
    const std::vector<StepRecord>& steps = runs[r].watch.steps;
    REQUIRE(steps.size() == 30);
    double since = 0, n = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::int64_t step = steps[i].step;
      CAPTURE(r, step);
      CHECK(step == static_cast<std::int64_t>(i) + 1);
      CHECK(steps[i].meets == (step % 4 == 0 || step % 10 == 0));
      CHECK(steps[i].ends_epoch == (step % 10 == 0));
      CHECK(steps[i].samples == 6);
      const auto done = static_cast<double>(i);
      since += 2 + done, n += 1;  // mean over ranks: 1 + 1 + i
      CHECK(steps[i].loss == Approx(steps[i].meets ? since / n : 1 + static_cast<double>(r) + done));
      if (steps[i].meets) since = n = 0;
    }
    CHECK(runs[r].watch.epochs.size() == 3);
    CHECK(runs[r].watch.epochs[1].train_loss == Approx(16.5));  // mean of 2 + i over i = 10 .. 19
    CHECK(runs[r].watch.epochs[2].last);
    CHECK(runs[r].ending == Ending::finished);
  }
}

TEST_CASE("asynchronous replicas wait for nobody between meetings", "[train][loop]") {
  constexpr double kSlow_s = 10e-3;
  const double start_s = now_s();
  const auto runs = run_three({.meets = Progress::Meets::when_called, .equal_weights = false}, {0, 0, kSlow_s});
  CHECK(runs[2].paces.done_s - start_s > 30 * kSlow_s);
  std::vector<double> losses[3];
  for (std::size_t r = 0; r < 3; ++r) {
    const RankRun& run = runs[r];
    CHECK(run.ending == Ending::finished);
    CHECK(run.paces.steps == 30);
    CHECK(run.state.step == 30);
    for (const StepRecord& record : run.watch.steps)
      if (record.meets) losses[r].push_back(record.loss);
    REQUIRE(run.watch.epochs.size() >= 3);
    CHECK(run.watch.epochs.back().last);
    CHECK(run.watch.epochs.back().epoch == 3);
  }
  CHECK(runs[0].paces.done_s < runs[2].paces.done_s - 10 * kSlow_s);  // by at least two epochs of its steps
  CHECK(losses[0].size() == losses[1].size());
  CHECK(losses[0].size() == losses[2].size());
  for (std::size_t i = 0; i < std::min(losses[0].size(), losses[2].size()); ++i)
    CHECK((losses[0][i] == losses[2][i] || (std::isnan(losses[0][i]) && std::isnan(losses[2][i]))));
}

TEST_CASE("hooks are called while a rank stands at a meeting, because it is done or serves", "[train][loop]") {
  const auto runs = run_three({.meets = Progress::Meets::when_called, .equal_weights = false}, {0, kServes, 5e-3});
  CHECK(runs[0].watch.waits > 0);
  CHECK(runs[1].watch.waits > 0);
  CHECK(runs[1].paces.steps == 0);
  for (const RankRun& run : runs) CHECK(run.ending == Ending::finished);
}

TEST_CASE("the clock's checkpoint calls all replicas to a meeting", "[train][loop]") {
  const auto runs = run_three({.meets = Progress::Meets::when_called, .equal_weights = false}, {0.5e-3, 1e-3, 4e-3},
                              "[checkpoint]\nevery_minutes = 0.0005\n");
  std::size_t wanted[3] = {};
  for (std::size_t r = 0; r < 3; ++r)
    for (const StepRecord& record : runs[r].watch.steps) {
      if (record.checkpoint_requested) ++wanted[r];
      if (record.checkpoint_requested) CHECK(record.meets);
    }
  CHECK(wanted[0] >= 1);
  CHECK(wanted[1] == wanted[0]);
  CHECK(wanted[2] == wanted[0]);
}

}  // namespace echelon
