// SPDX-License-Identifier: Apache-2.0
// Runs with a class for every pixel: k replicas equal one whichever pixels count, weights are those of PyTorch's
// CrossEntropyLoss, and figures and predictions are the same for any number of ranks.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "base/atomic_file.hpp"
#include "h5/file.hpp"
#include "tests/run/scenes.hpp"

namespace echelon::test {
namespace {

using Catch::Contains;
using nlohmann::json;

}  // namespace

TEST_CASE("replicas with uneven numbers of pixels that count have the weights of one", "[dense][equality]") {
  const Trial trial(kScenes);
  write_scenes(trial / "train/a.h5", 32, uneven);
  write_scenes(trial / "test/a.h5", 10, uneven);
  const Sets weighted = GENERATE(Sets{}, Sets{"model.class_weights=[0.25, 1, 3]"}, Sets{"model.inverse_frequency=0.5"},
                                 Sets{"batch.accumulation=2", "model.class_weights=[0.25, 1, 3]"});
  CAPTURE(weighted);
  const std::vector<double> one = weights_of(trial, "one", 0, weighted);
  for (const int ranks : {2, 4})
    CHECK(distance(weights_of(trial, fmt::format("k{}", ranks), ranks, weighted), one) <= 1e-9);
  const std::vector<double> served = weights_of(trial, "served", 2, with(weighted, {"exchange.strategy=server"}));
  CHECK(distance(served, one) <= 1e-9);
  CHECK(distance(weights_of(trial, "rows", 2, with(weighted, {"parallel.space=2"})), one) <= 1e-9);
}

TEST_CASE("pixels that do not count might as well be missing", "[dense]") {
  std::string pointwise = kScenes;
  pointwise.replace(pointwise.find("kernel = [3, 3]\npadding = [1, 1]"), 32, "kernel = [1, 1]");
  const Trial ignoring(pointwise), lacking(pointwise);
  const auto never = [](std::int64_t, std::int64_t) { return false; };
  for (const char* file : {"train/a.h5", "test/a.h5"}) {
    write_scenes(ignoring / file, 16, [](std::int64_t, std::int64_t p) { return p >= kPixels / 2; });
    write_scenes(lacking / file, 16, never, kSide / 2);
  }
  const Sets weights = {"model.class_weights=[0.5, 1, 4]"};
  CHECK(distance(weights_of(ignoring, "trial", 2, weights), weights_of(lacking, "trial", 0, weights)) <= 1e-12);
  for (const char* figure : {"test_loss", "test_accuracy", "train_loss"})
    CHECK(ignoring.summary()[figure].get<double>() == Approx(lacking.summary()[figure].get<double>()).epsilon(1e-12));
}

TEST_CASE("the loss is divided by the weights of the labels that count", "[dense]") {
  const Trial trial(kScenes);
  write_scenes(trial / "train/a.h5", 16, [](std::int64_t, std::int64_t p) { return p >= kPixels / 2; });
  write_scenes(trial / "test/a.h5", 8, [](std::int64_t, std::int64_t) { return false; });
  const std::vector<double> half = weights_of(trial, "half", 0, {});
  CHECK(distance(weights_of(trial, "twice", 0, {"model.class_weights=[2, 2, 2]"}), half) <= 1e-12);
  CHECK(distance(weights_of(trial, "other", 0, {"model.class_weights=[1, 2, 2]"}), half) > 1e-3);
}

TEST_CASE("figures and predictions of pixels are those of one rank on any number of ranks", "[dense][evaluate]") {
  const Trial trial(kScenes);
  write_scenes(trial / "train/a.h5", 16, uneven);
  write_scenes(trial / "test/a.h5", 11, uneven);
  const Sets all = {R"(evaluate.metrics=["mean_iou", "class_iou", "class_f1", "macro_f1", "confusion"])",
                    "model.class_weights=[0.25, 1, 3]"};
  json one;
  std::string classes;
  const std::vector<std::pair<int, Sets>> runs = {{0, {}}, {4, {}}, {2, {"parallel.space=2"}}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string name = fmt::format("run-{}", i);
    (void)weights_of(trial, name, runs[i].first, with(all, runs[i].second));
    const json row = trial.summary(name);
    if (i == 0) one = row, classes = read_file_whole(trial.attempt(name) + "/classes.csv");
    for (const char* figure : {"test_accuracy", "test_mean_iou", "test_macro_f1", "test_iou", "test_f1"}) {
      CAPTURE(i, figure);
      REQUIRE(row.contains(figure));
      CHECK(row[figure] == one[figure]);
    }
    CHECK(read_file_whole(trial.attempt(name) + "/classes.csv") == classes);
  }

  // The figures follow from the predictions, pixel by pixel.
  REQUIRE(trial.echelon({"predict", trial.run("run-0"), "test", "--out", "p.h5", "--outputs"}, 2).code == 0);
  const h5::Reader made(trial / "p.h5"), truth(trial / "test/a.h5");
  REQUIRE(made.info("predictions").shape == Shape{11, kSide, kSide});
  REQUIRE(made.info("outputs").shape == Shape{11, 3, kSide, kSide});
  std::vector<std::int32_t> predicted(11 * kPixels), labels(11 * kPixels);
  std::vector<float> outputs(3 * predicted.size());
  made.read_all("predictions", predicted.data(), DType::i32);
  made.read_all("outputs", outputs.data(), DType::f32);
  truth.read_all("labels", labels.data(), DType::i32);
  double counting = 0, right = 0, both[3] = {}, any[3] = {};
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const float* first = outputs.data() + i / kPixels * 3 * kPixels + i % kPixels;
    CHECK(first[0] + first[kPixels] + first[2 * kPixels] == Approx(1));
    for (int c = 0; c < 3; ++c) CHECK(first[predicted[i] * kPixels] >= first[c * kPixels]);
    if (labels[i] == 255) continue;
    counting += 1, right += predicted[i] == labels[i] ? 1 : 0;
    for (int c = 0; c < 3; ++c) {
      both[c] += predicted[i] == c && labels[i] == c ? 1 : 0;
      any[c] += predicted[i] == c || labels[i] == c ? 1 : 0;
    }
  }
  CHECK(one["test_accuracy"] == right / counting);
  double sum = 0;
  for (std::size_t c = 0; c < 3; ++c) sum += both[c] / any[c];
  CHECK(one["test_mean_iou"].get<double>() == Approx(sum / 3).epsilon(1e-14));
  CHECK(made.attribute_double("mean_iou") == one["test_mean_iou"].get<double>());

  const Outcome unmeasured = trial.check({"goal.metric=test_mean_iou", "goal.target=0.3"});
  CHECK(unmeasured.code == 2);
  CHECK_THAT(unmeasured.err, Contains("measured only if evaluate.metrics names \"mean_iou\""));
  const Outcome missed = trial.train(0, with(all, {"name=missed", "goal.metric=test_mean_iou", "goal.target=0.99"}));
  CHECK(missed.code == 8);
}

TEST_CASE("bad labels of pixels and keys that do not fit end with their exit codes", "[dense]") {
  const Trial trial(kScenes);
  write_scenes(trial / "train/a.h5", 8, uneven);
  write_scenes(trial / "test/a.h5", 8, uneven);
  const Outcome unknown = trial.check({"model.ignore_label="});
  CHECK(unknown.code == 4);
  CHECK_THAT(unknown.err, Contains("record 0 of 'labels' has label 255 at (0, 0)"));
  const Outcome weights = trial.check({"model.class_weights=[1, 2]"});
  CHECK(weights.code == 2);
  CHECK_THAT(weights.err, Contains("has 2 weights") && Contains("3 classes"));
  CHECK(trial.check({"model.class_weights=[1, 2, 3]", "model.inverse_frequency=1"}).code == 2);
  const Outcome moved = trial.check({"data.augment_flip=true"});
  CHECK(moved.code == 2);
  CHECK_THAT(moved.err, Contains("their labels of (6, 6)"));
  const Outcome seen = trial.echelon({"data", "inspect", "train"});
  CHECK(seen.code == 0);
  CHECK_THAT(seen.out, Contains("labels are no class"));

  // A file of another program: its table reads it.
  h5::Writer other(trial / "other.h5");
  const std::vector<float> pixels(4 * 2 * kPixels, 0.5F);
  std::vector<std::uint8_t> classes(4 * kPixels, 1);
  classes[3] = 6, classes[5] = 255;
  other.write_all("images", DType::f32, {4, 2, kSide, kSide}, pixels.data());
  other.write_all("labels", DType::u8, {4, kSide, kSide}, classes.data());
  other.publish();
  const Outcome guessed = trial.echelon({"data", "inspect", "other.h5"});
  CHECK(guessed.code == 0);
  CHECK_THAT(guessed.out, Contains("label_form = \"dense\"\nclasses = 7 ") && Contains("ignore_label = [255]"));
}

TEST_CASE("predict draws the first samples of models with a class for every pixel", "[dense][predict]") {
  const Trial trial(kScenes);
  write_scenes(trial / "train/a.h5", 16, uneven);
  write_scenes(trial / "test/a.h5", 6, uneven);
  REQUIRE(trial.train(0, {"train.epochs=1"}).code == 0);
  const auto predict = [&](int ranks, const std::string& out, std::vector<std::string> more) {
    more.insert(more.begin(), {"predict", trial.run(), "test", "--out", out, "--batch", "2"});
    return trial.echelon(more, ranks);
  };
  const Outcome few = predict(0, "few.h5", {});
  INFO(few.out << few.err);
  REQUIRE(few.code == 0);
  CHECK_THAT(few.out,
             Contains("overlays few-0.png .. few-3.png: predicted class 1 #0072b2, class 2 #e08e00; outlines"));
  CHECK(std::filesystem::exists(trial / "few-3.png"));
  CHECK_FALSE(std::filesystem::exists(trial / "few-4.png"));
  // Samples of several batches and ranks: the third one is in the second batch.
  REQUIRE(predict(3, "many.h5", {"--overlays", "6"}).code == 0);
  for (const int id : {0, 2, 3})
    CHECK(read_file_whole(trial / fmt::format("many-{}.png", id)) ==
          read_file_whole(trial / fmt::format("few-{}.png", id)));
  CHECK(std::filesystem::exists(trial / "many-5.png"));
  REQUIRE(predict(0, "none.h5", {"--overlays", "0"}).code == 0);
  CHECK_FALSE(std::filesystem::exists(trial / "none-0.png"));
}

}  // namespace echelon::test
