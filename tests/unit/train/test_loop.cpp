// The loop around steps that a test makes up: what it passes on, counts and stops by.
#include <catch2/catch.hpp>

#include "comm/local/local.hpp"
#include "config/parse.hpp"
#include "tests/unit/data/shards.hpp"
#include "tests/unit/h5/folder.hpp"
#include "train/loop.hpp"

namespace echelon {
namespace {

// Steps take as many places as the test says: more than one, and the replica came too late for those between.
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
  void step_end(const StepRecord& record) override { steps.push_back(record); }
  void epoch_end(EpochRecord& record) override { epochs.push_back(record); }
  void run_end(bool with) override { finished = with; }
};

struct Run {
  test::Folder folder;
  Engine engine{std::move(make_local_world(1)[0])};
  Group group{engine, 0};
  Control control{engine, 1};
  Config config;
  std::optional<RunPlan> plan;
  RunState state;
  PhaseBoard phase;
  Jumps jumps;
  Watch watch;

  // 10 steps an epoch, 3 epochs.
  Run() {
    test::write_shards(folder.path(), {80});
    config = parse_config(
        "[model]\nlayers = [{type = \"flatten\"}, {type = \"dense\", units = 10}]\n[batch]\nglobal = "
        "8\n[train]\nepochs = 3\n[data]\ntrain = \"" +
            folder.path() + "\"\n",
        "test.toml");
  }
  void make_plan() { plan.emplace(plan_run(config, Mesh(1), {}, open_inputs(config))); }
  Ending go() {
    Loop loop(config, *plan, 0, jumps, group, control, state, phase, {&watch});
    return loop.run();
  }
};

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
  REQUIRE(run.watch.epochs.size() == 2);  // the first ended inside the jump over 13 steps
  CHECK(run.watch.epochs[0].epoch == 2);
  CHECK(run.watch.epochs[1].last);
}

TEST_CASE("a step that leads back is a defect", "[train][loop]") {
  Run run;
  run.make_plan();
  run.jumps.lengths = {0};
  CHECK_THROWS_WITH(run.go(), Catch::Contains("leads back"));
}

}  // namespace echelon
