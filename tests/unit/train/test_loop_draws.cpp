// SPDX-License-Identifier: Apache-2.0
// The loop of replicas that draw their batches: loaders, queue and meetings together, with ranks as threads.
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "base/check.hpp"
#include "config/parse.hpp"
#include "tests/support/ranks.hpp"
#include "tests/unit/data/shards.hpp"
#include "tests/unit/h5/folder.hpp"
#include "train/draw_queue.hpp"
#include "train/loop.hpp"

namespace echelon {
namespace {

constexpr std::int64_t kSamples = 61;
using Times = std::map<std::int64_t, int>;  // times trained, keyed by epoch * kSamples + sample

struct Drawer final : Stepper {
  Drawer(DrawQueue& queue, const RunPlan& plan, int rank, double step_s) : queue_(queue), step_s_(step_s) {
    LoaderOptions options;
    options.replica = rank;
    options.prefetch = 1;
    options.draws = &queue;
    loader_.emplace(plan.train, plan.shards, options);
  }
  const DrawPlan* draws() const override { return &queue_.plan(); }
  std::optional<Drawn> draw() override {
    batch_ = loader_->draw();
    if (batch_ == nullptr) return {};
    const Draw draw = queue_.plan().at(batch_->drawn);
    return Drawn{.draw = draw, .step = queue_.step_of(draw)};
  }
  StepResult run(const StepInfo& info, const std::function<void(const LossSums&)>& on_losses) override {
    ECHELON_CHECK_EQ(info.epoch, batch_->epoch);
    ECHELON_CHECK_EQ(info.local_weight, batch_->weight);
    ECHELON_CHECK_GE(info.weight, info.local_weight);
    StepResult result;
    result.losses = {.loss = 2 * batch_->weight, .correct = 0, .weight = batch_->weight};
    on_losses(result.losses);
    const auto* weights = static_cast<const float*>(batch_->weights);
    for (std::int64_t i = 0; i < batch_->n; ++i)
      if (weights[i] > 0) ++times[batch_->epoch * kSamples + batch_->ids[i]];
    std::this_thread::sleep_for(std::chrono::duration<double>(step_s_));
    result.outcome.next_step = info.step + 1;
    queue_.trained();
    ++steps;
    return result;
  }
  Times times;
  int steps = 0;

 private:
  DrawQueue& queue_;
  double step_s_;
  const Batch* batch_ = nullptr;
  std::optional<Loader> loader_;
};

struct Watcher final : Hook {
  std::vector<StepRecord> meetings;
  std::vector<EpochRecord> epochs;
  void step_end(const StepRecord& record) override {
    if (record.meets) meetings.push_back(record);
  }
  void epoch_end(EpochRecord& record) override { epochs.push_back(record); }
};

}  // namespace

TEST_CASE("each sample is trained once an epoch by replicas of any speed, which meet at each epoch's end",
          "[train][loop][draws]") {
  const test::Folder folder;
  test::write_shards(folder.path(), {40, 21});
  const Config config = parse_config(
      "[model]\nlayers = [{type = \"flatten\"}, {type = \"dense\", units = 10}]\n[batch]\nglobal = 6\n"
      "[exchange]\nstrategy = \"asynchronous\"\n[train]\nepochs = 3\n[data]\nbalance = \"queue\"\n"
      "ragged = \"zero_weight\"\ntrain = \"" +
          folder.path() + "\"\n",
      "test.toml");
  std::mutex mutex;
  Times times;
  std::vector<int> steps(3);
  test::run_ranks(3, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    Group group(engine, 0);
    const int rank = engine.rank();
    Control control(engine, 1, {.meets = Progress::Meets::when_called});
    const RunPlan plan = plan_run(config, Mesh(3), {}, open_inputs(config));
    ECHELON_CHECK_EQ(plan.total_steps, 33);
    RunState state;
    DrawQueue queue(engine, 1 + Control::kChannels, plan.shards, {}, plan.steps_per_epoch, plan.total_steps);
    PhaseBoard phase;
    Watcher watch;
    {
      Drawer drawer(queue, plan, rank, rank == 1 ? 20e-3 : 2e-3);
      const Ending ending = run_loop({config, plan, rank, drawer, group, control, state, phase, {&watch}});
      ECHELON_CHECK(ending == Ending::finished, "the run did not finish");
      queue.gather(group);
      const std::lock_guard lock(mutex);
      for (const auto& [sample, count] : drawer.times) times[sample] += count;
      steps[static_cast<std::size_t>(rank)] = drawer.steps;
    }
    queue.close();
    ECHELON_CHECK_EQ(state.step, plan.total_steps);
    ECHELON_CHECK_EQ(state.epoch, 3);
    ECHELON_CHECK_GE(watch.epochs.size(), std::size_t{3});
    ECHELON_CHECK(watch.epochs.back().last && watch.epochs.back().epoch == 3, "the last epoch");
    for (std::size_t i = 1; i < watch.meetings.size(); ++i)
      ECHELON_CHECK_GE(watch.meetings[i].step, watch.meetings[i - 1].step);
    const std::vector<double> met = group.gather(static_cast<double>(watch.meetings.size()));
    ECHELON_CHECK(met[0] == met[1] && met[1] == met[2], "meetings {} {} {}", met[0], met[1], met[2]);
    group.barrier();
  });
  CHECK(std::ssize(times) == 3 * kSamples);
  for (const auto& [sample, count] : times) REQUIRE(count == 1);
  CHECK(steps[0] + steps[1] + steps[2] == 3 * 31);
  CHECK(steps[1] < 25);  // 31 each with shards; fast replicas wait for the slow one at meetings
}

}  // namespace echelon
