// SPDX-License-Identifier: Apache-2.0
// evaluate.metrics: the figures are the same for any number of ranks and any split, in every file, eval and predict.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "h5/file.hpp"
#include "tests/run/trial.hpp"

namespace echelon::test {
namespace {

using nlohmann::json;

constexpr const char* kAll =
    R"(evaluate.metrics=["top5_accuracy", "macro_f1", "class_recall", "class_precision", "confusion"])";

// The figures of the last evaluation.
struct Figures {
  json row;
  std::string classes;  // content of classes.csv
};

Figures trained(const Trial& trial, const std::string& name, int ranks, Sets sets) {
  sets = with({"name=" + name, kAll, "device.kind=reference", "device.dtype=f64", "train.steps=6", "evaluate.batch=32"},
              sets);
  std::vector<std::string> words = {"train", "trial.toml", "--local-ranks", std::to_string(ranks)};
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  const Outcome outcome = trial.echelon(words);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == kExitOk);
  Figures figures{.row = {}, .classes = read_file_whole(trial.attempt(name) + "/classes.csv")};
  for (const json& row : trial.metrics(name))
    if (row["type"] == "epoch") figures.row = row;
  return figures;
}

}  // namespace

TEST_CASE("figures of classes are those of one rank on any number of ranks and any split", "[evaluate][slow]") {
  const Trial trial;
  const Figures one = trained(trial, "one", 1, {});
  const json summary = trial.summary("one");
  for (const char* name : {"test_top5_accuracy", "test_macro_f1", "test_recall", "test_precision"}) {
    CAPTURE(name);
    REQUIRE(one.row.contains(name));
    CHECK(summary[name] == one.row[name]);
  }
  CHECK(one.row["test_recall"].size() == 10);
  CHECK(one.row["test_top5_accuracy"].get<double>() > one.row["test_accuracy"].get<double>());
  CHECK(one.row["test_top5_accuracy"].get<double>() < 1);
  double labels = 0, right = 0;
  for (int c = 0; c < 10; ++c) {
    int seen = 0, l = 0, p = 0, r = 0;
    const std::size_t at = one.classes.find(fmt::format("\n{},", c));
    REQUIRE(at != std::string::npos);
    REQUIRE(std::sscanf(one.classes.c_str() + at + 1, "%d,,%d,%d,%d", &seen, &l, &p, &r) == 4);
    labels += l, right += r;
    CHECK(one.row["test_recall"][static_cast<std::size_t>(c)] == static_cast<double>(r) / l);
  }
  CHECK(labels == 201);
  CHECK(right / labels == one.row["test_accuracy"]);

  const std::vector<std::pair<int, Sets>> runs = {
      {3, {}},
      {2, {"evaluate.by=first"}},
      {2, {"parallel.tensor=2"}},
      {4, {"parallel.tensor=2", "parallel.pipeline=2", "batch.accumulation=2"}},
      {2, {"parallel.space=2"}}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    CAPTURE(i);
    const Figures other = trained(trial, fmt::format("run-{}", i), runs[i].first, runs[i].second);
    for (const char* name : {"test_accuracy", "test_top5_accuracy", "test_macro_f1", "test_recall", "test_precision"})
      CHECK(other.row[name] == one.row[name]);
    CHECK(other.classes == one.classes);
  }

  const std::string run = trial.run("one");
  const Outcome evaluated = trial.echelon({"eval", run, "test", "--batch", "50", "--classes", "by-class.csv"}, 2);
  INFO(evaluated.out << evaluated.err);
  REQUIRE(evaluated.code == kExitOk);
  CHECK(read_file_whole(trial / "by-class.csv") == one.classes);
  CHECK_THAT(evaluated.out,
             Catch::Contains(fmt::format("top-5    {:.2f} %", 100 * one.row["test_top5_accuracy"].get<double>())));
  REQUIRE(trial.echelon({"predict", run, "test", "--out", "p.h5"}).code == kExitOk);
  CHECK(h5::Reader(trial / "p.h5").attribute_double("macro_f1") == one.row["test_macro_f1"].get<double>());

  const Outcome converted = trial.echelon({"report", run, "--tensorboard", "events"});
  CHECK(converted.code == kExitOk);
}

TEST_CASE("figures of classes that a model has none of are refused", "[evaluate][slow]") {
  const Trial trial;
  const Outcome outcome = trial.check({"data.test=", "evaluate.metrics=macro_f1"});
  CHECK(outcome.code == kExitConfig);
  CHECK_THAT(outcome.err, Catch::Contains("evaluate.metrics is not used here"));
  const Outcome unknown = trial.check({"evaluate.metrics=macro_f2"});
  CHECK(unknown.code == kExitConfig);
  CHECK_THAT(unknown.err, Catch::Contains("did you mean 'macro_f1'"));
}

}  // namespace echelon::test
