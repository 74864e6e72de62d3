// SPDX-License-Identifier: Apache-2.0
// Recipes of training: changed and mixed images, averages of weights and initial weights are the same for any number of
// replicas, and resume to the same bits.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/hash_rng.hpp"
#include "h5/file.hpp"
#include "tests/run/compare.hpp"
#include "tests/support/random.hpp"

namespace echelon::test {
namespace {

using Catch::Contains;

const Sets kDouble = {"device.kind=reference", "device.dtype=f64", "train.steps=5", "evaluate.every_epochs=0",
                      "checkpoint.every_steps=0"};

const Sets kChanges = {"data.augment.crop_scale=[0.3, 1]",
                       "data.augment.brightness=0.3",
                       "data.augment.contrast=0.3",
                       "data.augment.flip_rows=true",
                       "data.augment.rotate=plane",
                       "data.augment.erase=0.5",
                       "data.augment.cutout=3"};
const Sets kMixed = {"data.augment.mixup=0.4", "data.augment.cutmix=1", "model.label_smoothing=0.1"};

// The loss in the output of `echelon eval`.
double printed_loss(const std::string& out) {
  const std::size_t at = out.find("\nloss ");
  REQUIRE(at != std::string::npos);
  return std::stod(out.substr(at + 6));
}

}  // namespace

TEST_CASE("changed and mixed images: k replicas have the weights of one", "[run][recipes][equality]") {
  const Trial trial;
  const Sets sets =
      with(kDouble, GENERATE(kChanges, kMixed, with(kMixed, {"data.augment_flip=true", "data.image_size=[8, 7]"}),
                             with(kMixed, {"data.ragged=zero_weight", "batch.global=400"})));
  CAPTURE(sets);
  const TrainedRun one = train_run(trial, "one", {{0}}, sets);
  const TrainedRun two = train_run(trial, "two", {{2}}, sets), four = train_run(trial, "four", {{4}}, sets);
  check_equal(two, one, {.within = 1e-8});
  check_equal(four, one, {.within = 1e-8});
  // On other samples the weights would be others.
  const TrainedRun still = train_run(trial, "other", {{0}}, with(sets, {"seed=8"}));
  CHECK(relative_distance(still.values("weights/"), one.values("weights/")) > 1e-4);
}

TEST_CASE("one replica with the files of two mixes as they do", "[run][recipes][equality]") {
  const Trial trial;
  const Sets sets = with(with(kDouble, kMixed), {"data.sharding=file"});
  const TrainedRun two = train_run(trial, "two", {{2}}, sets);
  check_equal(train_run(trial, "one", {{0}}, with(sets, {"data.as_replicas=2"})), two, {.within = 1e-8});
}

TEST_CASE("volumes are turned, cut and mixed: k replicas have the weights of one", "[run][recipes][equality]") {
  const Trial trial(R"(name = "trial"
[data]
train = "volumes.h5"
sharding = "record"
[batch]
global = 8
[optimizer]
learning_rate = 0.1
[[model.layers]]
type = "conv"
channels = 3
kernel = 3
padding = 1
[[model.layers]]
type = "flatten"
[[model.layers]]
type = "dense"
units = 4
)");
  const HashRng draws(3, "volumes");
  std::vector<float> values(24 * 2 * 64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(2 * draws.uniform(i) - 1);
  std::vector<std::uint8_t> labels(24);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::uint8_t>(i % 4);
  h5::Writer writer(trial / "volumes.h5");
  writer.attribute("classes", std::int64_t{4});
  writer.write_all("samples", DType::f32, {24, 2, 4, 4, 4}, values.data(), {.chunk_rows = 5});
  writer.write_all("labels", DType::u8, {24}, labels.data(), {.chunk_rows = 5});
  writer.publish();
  const Sets sets = with(kDouble, {"data.augment.rotate=cube", "data.augment.flip_depth=true", "data.augment.cutout=2",
                                   "data.augment.cutmix=1", "model.init=orthogonal"});
  const TrainedRun one = train_run(trial, "one", {{0}}, sets);
  check_equal(train_run(trial, "two", {{2}}, sets), one, {.within = 1e-8});
  check_equal(train_run(trial, "slabs", {{2, {"parallel.space=2"}}}, sets), one, {.within = 1e-8});
  check_equal(train_run(trial, "units", {{2, {"parallel.tensor=2"}}}, sets), one, {.within = 1e-8});
  for (const char* set : {"data.augment.crop_scale=[0.5, 1]", "data.augment.erase=0.5", "data.image_size=[4, 4]",
                          "data.augment.contrast=0.5"}) {
    const Outcome outcome = trial.check({set});
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Contains("images"));
  }
}

TEST_CASE("changed, mixed and averaged runs resume to the same bits", "[run][recipes]") {
  const Trial trial;
  const Sets recipe = {"optimizer.average_decay=0.9", "train.steps=21", "checkpoint.every_steps=7",
                       "optimizer.schedule=one_cycle", "optimizer.schedule_epochs=2"};
  const Sets sets = with(with(with(kChanges, kMixed), recipe), GENERATE(Sets{}, Sets{"parallel.pipeline=2"}));
  const TrainedRun whole = train_run(trial, "whole", {{2}}, sets);
  const TrainedRun resumed = train_run(trial, "resumed", {{2, {"train.steps=9"}}, {2, {}, "resumed"}}, sets);
  check_equal(resumed, whole, {.part = ""});
  CHECK(relative_distance(whole.values("average/"), whole.values("weights/")) > 1e-3);
}

TEST_CASE("averages of weights follow their formula, are evaluated and exported, on any number of replicas",
          "[run][recipes][equality]") {
  const Trial trial;
  const Sets sets = with(kDouble, {"optimizer.average_decay=0.6", "evaluate.every_epochs=1", "checkpoint.every_steps=1",
                                   "checkpoint.keep=9", "model.init=he"});
  const TrainedRun one = train_run(trial, "one", {{0}}, sets);
  const TrainedRun two = train_run(trial, "two", {{2}}, sets);
  check_equal(two, one, {.within = 1e-8, .evaluation = true});
  check_equal(two, one, {.part = "average/", .within = 1e-8});
  check_equal(train_run(trial, "halves", {{2, {"parallel.tensor=2"}}}, sets), one,
              {.part = "average/", .within = 1e-8});

  // From the weights of the first steps: the first checkpoint has the average 0.1 a + 0.9 w, so the second follows.
  const auto at = [&](int step, const char* prefix) {
    return checkpoint_values(fmt::format("{}/checkpoints/step-{:08}.h5", trial.run("one"), step), prefix);
  };
  std::vector<double> average = at(1, "average/");
  for (int step = 2; step <= 5; ++step) {
    const std::vector<double> weights = at(step, "weights/"), found = at(step, "average/");
    const double earlier = step - 1, decay = std::min(0.6, (1 + earlier) / (10 + earlier));
    for (std::size_t i = 0; i < average.size(); ++i) average[i] = decay * average[i] + (1 - decay) * weights[i];
    CHECK(relative_distance(found, average) < 1e-12);
  }
  // The model that is evaluated afterwards is the average too.
  const Outcome outcome = trial.echelon({"eval", trial.run("one"), "test"});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(printed_loss(outcome.out) == Approx(one.summary()["test_loss"].get<double>()).epsilon(1e-4));
  const Outcome unfit = trial.check({"optimizer.average_decay=0.9", "exchange.strategy=averaging"});
  CHECK(unfit.code == 2);
  CHECK_THAT(unfit.err, Contains("optimizer.average_decay is not used here"));
}

TEST_CASE("the memory of averages is predicted", "[run][recipes]") {
  const Trial trial;
  const auto plan = [&](const Sets& sets) { return trial.check(sets, {"--replicas", "2"}).out; };
  CHECK(plan({}) != plan({"optimizer.average_decay=0.9"}));
}

TEST_CASE("changes that do not fit the data are refused with a reason", "[run][recipes]") {
  const Trial trial;
  const std::vector<std::pair<Sets, std::string>> cases = {
      {{"data.augment.saturation=0.5"}, "red, green and blue"},
      {{"data.augment.flip_depth=true"}, "needs 3 spatial axes"},
      {{"data.augment.rotate=cube"}, "needs 3 spatial axes"},
      {{"data.augment.rotate=plane", "data.image_size=[8, 6]"}, "equally long"},
      {{"data.augment.mixup=0.4", "model.loss=mse"}, "softmax loss"},
      {{"data.augment.mixup=0.4", "model.class_weights=[1,1,1,1,1,1,1,1,1,2]"}, "class_weights"},
      {{"model.init_range=0.2"}, "init = \"uniform\""},
  };
  for (const auto& [sets, says] : cases) {
    CAPTURE(sets);
    const Outcome outcome = trial.check(sets);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Contains(says));
  }
}

TEST_CASE("images of any size are resized, and their centres evaluated, also from a checkpoint", "[run][recipes]") {
  const Trial trial;
  const Sets sets = {"data.image_size=[6, 6]", "data.evaluation_resize=7"};
  const TrainedRun run = train_run(trial, "seen", {{2}}, sets);
  CHECK(run.summary()["test_accuracy"].get<double>() > 0.2);  // chance is 0.1, and pixels are noise
  // Images of their own size are as they are stored.
  const TrainedRun same = train_run(trial, "same", {{0, {"data.image_size=[8]", "data.evaluation_resize=8"}}});
  check_equal(same, train_run(trial, "stored", {{0}}), {.part = "", .evaluation = true});
  const Outcome outcome = trial.echelon({"eval", trial.run("seen"), "test"});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(printed_loss(outcome.out) == Approx(run.summary()["test_loss"].get<double>()).epsilon(1e-4));
  const Outcome predicted = trial.echelon({"predict", trial.run("seen"), "test", "--out", "p.h5"});
  INFO(predicted.out << predicted.err);
  CHECK(predicted.code == 0);
}

}  // namespace echelon::test
