// SPDX-License-Identifier: Apache-2.0
// Runs with other losses than cross-entropy, and figures of numbers and of two classes: k replicas equal one, and
// figures are the same for any number of ranks and follow from the predictions.
#include <algorithm>
#include <array>

#include "tests/run/scenes.hpp"

namespace echelon::test {
namespace {

using Catch::Contains;
using nlohmann::json;

constexpr const char* kNumbers = R"(name = "trial"
seed = 3
[data]
train = "train"
test = "test"
sharding = "record"
[batch]
global = 8
[train]
epochs = 2
[optimizer]
learning_rate = 0.02
[device]
kind = "reference"
dtype = "f64"
[[model.layers]]
type = "flatten"
[[model.layers]]
type = "dense"
units = 5
[[model.layers]]
type = "tanh"
[[model.layers]]
type = "dense"
units = 2
)";

// Two numbers a sample, made from three; with `signs` each is -1 or 1.
void write_numbers(const std::string& path, std::int64_t samples, bool signs = false) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  const HashRng draws(6, path.substr(path.rfind('/')));
  std::vector<float> features, labels;
  for (std::int64_t i = 0; i < samples; ++i) {
    std::array<double, 3> x{};
    for (std::size_t f = 0; f < 3; ++f) x[f] = 2 * draws.uniform(static_cast<std::uint64_t>(3 * i) + f) - 1;
    for (const double label : {x[0] - x[1] * x[2], 3 * x[1] + 10})
      labels.push_back(static_cast<float>(!signs ? label : std::fmod(label, 10) > 0 ? 1 : -1));
    for (const double value : x) features.push_back(static_cast<float>(value));
  }
  h5::Writer writer(path);
  writer.write_all("samples", DType::f32, {samples, 1, 1, 3}, features.data(), {.chunk_rows = 4});
  writer.write_all("labels", DType::f32, {samples, 2}, labels.data(), {.chunk_rows = 4});
  writer.publish();
}

const Sets kEvaluated = {"evaluate.batch=4"};

}  // namespace

TEST_CASE("focal and Dice loss with uneven pixels: replicas, rows and stages have the weights of one",
          "[dense][equality]") {
  const Trial trial(kScenes);
  write_scenes(trial / "train/a.h5", 32, uneven);
  write_scenes(trial / "test/a.h5", 10, uneven);
  const Sets loss = GENERATE(Sets{"model.loss=dice"}, Sets{"model.loss=dice", "model.class_weights=[0.25, 1, 3]"},
                             Sets{"model.loss=focal", "model.focal_gamma=1.5", "model.class_weights=[0.25, 1, 3]"});
  CAPTURE(loss);
  const std::vector<double> one = weights_of(trial, "one", 0, loss);
  CHECK(distance(weights_of(trial, "k4", 4, loss), one) <= 1e-9);
  CHECK(distance(weights_of(trial, "k2", 2, with(loss, {"batch.accumulation=2"})), one) <= 1e-9);
  CHECK(distance(weights_of(trial, "rows", 2, with(loss, {"parallel.space=2"})), one) <= 1e-9);
  // A stopped run resumes to the same bits.
  (void)weights_of(trial, "again", 0, with(loss, {"train.steps=3"}));
  CHECK(weights_of(trial, "again", 0, with(loss, {"train.steps=8"})) == one);
}

TEST_CASE("Dice loss learns scenes, and its figures are those of any number of ranks", "[dense]") {
  const Trial trial(kScenes);
  const auto never = [](std::int64_t, std::int64_t) { return false; };
  write_scenes(trial / "train/a.h5", 64, never);
  write_scenes(trial / "test/a.h5", 11, never);
  const Sets sets = {"model.loss=dice", "train.epochs=20", "optimizer.learning_rate=1",
                     R"(evaluate.metrics=["mean_iou"])"};
  (void)weights_of(trial, "one", 0, sets);
  (void)weights_of(trial, "four", 4, sets);
  const json one = trial.summary("one"), four = trial.summary("four");
  CHECK(one["test_mean_iou"].get<double>() > 0.5);  // 0.23 of one class for all
  CHECK(four["test_mean_iou"] == one["test_mean_iou"]);
  CHECK(four["test_loss"].get<double>() == Approx(one["test_loss"].get<double>()).epsilon(1e-9));
  CHECK(one["test_loss"].get<double>() > 0);
  CHECK(one["test_loss"].get<double>() < 1);
}

TEST_CASE("numbers: losses mae and hinge over replicas, MAE and R2 over ranks and from predictions",
          "[evaluate][equality]") {
  const Trial trial(kNumbers);
  write_numbers(trial / "train/a.h5", 32);
  write_numbers(trial / "test/a.h5", 21);
  const Sets sets = with(kEvaluated, {"model.loss=mae", R"(evaluate.metrics=["mae", "r2"])"});
  const std::vector<double> one = weights_of(trial, "one", 0, sets);
  CHECK(distance(weights_of(trial, "four", 4, sets), one) <= 1e-9);
  (void)weights_of(trial, "squared", 2, with(sets, {"model.loss=mse", "train.epochs=1"}));
  const json row = trial.summary("one"), other = trial.summary("four");
  REQUIRE(row.contains("test_mae"));
  CHECK(row["test_mae"].get<double>() == Approx(row["test_loss"].get<double>()).epsilon(1e-12));
  for (const char* figure : {"test_mae", "test_r2"})
    CHECK(other[figure].get<double>() == Approx(row[figure].get<double>()).epsilon(1e-9));
  CHECK(trial.summary("squared").contains("test_r2"));

  REQUIRE(trial.echelon({"predict", trial.run("one"), "test", "--out", "p.h5"}, 2).code == 0);
  const h5::Reader made(trial / "p.h5"), truth(trial / "test/a.h5");
  std::vector<float> x(42), t(42);
  made.read_all("outputs", x.data(), DType::f32);
  truth.read_all("labels", t.data(), DType::f32);
  double absolute = 0, r2 = 0;
  for (std::size_t column = 0; column < 2; ++column) {
    double mean = 0, left = 0, all = 0;
    for (std::size_t i = column; i < 42; i += 2) mean += static_cast<double>(t[i]) / 21;
    for (std::size_t i = column; i < 42; i += 2) {
      const double label = static_cast<double>(t[i]), apart = static_cast<double>(x[i]) - label;
      absolute += std::fabs(apart) / 42, left += apart * apart, all += (label - mean) * (label - mean);
    }
    r2 += (1 - left / all) / 2;
  }
  CHECK(row["test_mae"].get<double>() == Approx(absolute).epsilon(1e-5));
  CHECK(row["test_r2"].get<double>() == Approx(r2).epsilon(1e-4));
  CHECK(made.attribute_double("mae") == Approx(absolute).epsilon(1e-5));

  const Outcome missed =
      trial.train(0, with(sets, {"name=missed", "goal.metric=test_mae", "goal.target=0.0001", "train.epochs=1"}));
  CHECK(missed.code == 8);
  CHECK_THAT(missed.out + missed.err, Contains("asked for at most 0.0001"));
  CHECK(trial.check({"goal.metric=test_r2", "goal.target=0.5"}).code == 2);
  const Outcome classes = trial.check({R"(evaluate.metrics=["auc"])"});
  CHECK(classes.code == 2);
  CHECK_THAT(classes.err, Contains("counts predictions of classes") && Contains("[\"mae\", \"r2\"]"));
}

TEST_CASE("hinge loss of signs: replicas equal one, labels outside are refused, AUC of two classes", "[evaluate]") {
  const Trial trial(kNumbers);
  write_numbers(trial / "train/a.h5", 32, true);
  write_numbers(trial / "test/a.h5", 21, true);
  const Sets sets = with(kEvaluated, {"model.loss=hinge", R"(evaluate.metrics=["auc"])"});
  const std::vector<double> one = weights_of(trial, "one", 0, sets);
  CHECK(distance(weights_of(trial, "four", 4, sets), one) <= 1e-9);
  const json row = trial.summary("one");
  CHECK(trial.summary("four")["test_auc"] == row["test_auc"]);
  CHECK(row["test_accuracy"].get<double>() > 0.5);

  REQUIRE(trial.echelon({"predict", trial.run("one"), "test", "--out", "p.h5", "--outputs"}).code == 0);
  const h5::Reader made(trial / "p.h5"), truth(trial / "test/a.h5");
  std::vector<float> x(42), t(42);
  made.read_all("outputs", x.data(), DType::f32);
  truth.read_all("labels", t.data(), DType::f32);
  double won = 0, pairs = 0;
  for (std::size_t yes = 0; yes < 42; ++yes)
    for (std::size_t no = 0; no < 42; ++no)
      if (t[yes] > 0 && t[no] < 0) won += x[yes] > x[no] ? 1 : x[yes] == x[no] ? 0.5 : 0, ++pairs;
  CHECK(row["test_auc"].get<double>() == Approx(won / pairs).epsilon(1e-3));

  write_numbers(trial / "train/a.h5", 8);
  const Outcome outside = trial.train(0, {"name=outside", "model.loss=hinge"});
  CHECK(outside.code == 4);
  CHECK_THAT(outside.err, Contains("\"hinge\" takes no and yes, -1 to 1"));
  CHECK_THAT(trial.check({"model.loss=dice"}).err, Contains("needs classes"));
  CHECK_THAT(trial.check({"model.focal_gamma=3"}).err, Contains("model.loss = \"focal\""));
}

}  // namespace echelon::test
