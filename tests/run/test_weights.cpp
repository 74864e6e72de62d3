// SPDX-License-Identifier: Apache-2.0
// model.weights and model.freeze: runs that begin from given weights, and layers that must stay as they were, under
// every strategy, codec and split.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "config/traits/codecs.hpp"
#include "config/traits/strategies.hpp"
#include "tests/run/compare.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;
using nlohmann::json;
using test::Sets;

struct Named {
  json shape;
  std::vector<float> values;
};
using Weights = std::map<std::string, Named>;

void write_safetensors(const std::string& path, const Weights& weights) {
  json header;
  std::string values;
  for (const auto& [name, tensor] : weights) {
    const std::size_t begin = values.size();
    values.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * sizeof(float));
    header[name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, values.size()}}};
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof length);
  write_file_whole(path, file + text + values);
}

Weights read_safetensors(const std::string& path) {
  const std::string file = read_file_whole(path);
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  Weights weights;
  const json header = json::parse(file.substr(sizeof length, length));
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const std::size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    Named& tensor = weights[name];
    tensor.shape = entry["shape"];
    tensor.values.resize((end - begin) / sizeof(float));
    std::memcpy(tensor.values.data(), file.data() + sizeof length + length + begin, end - begin);
  }
  return weights;
}

// A trial with "source.safetensors", the weights of a short run.
struct Source : test::Trial {
  Source() {
    REQUIRE(train(0, {"name=source", "train.steps=6", "evaluate.every_epochs=0"}).code == kExitOk);
    REQUIRE(echelon({"export", run("source"), "--out", "source.safetensors"}).code == kExitOk);
    weights = read_safetensors(*this / "source.safetensors");
  }
  // Returns a tensor from the last checkpoint of a run.
  std::vector<float> values_of(const std::string& run, const std::string& tensor) const {
    std::vector<float> narrow;
    for (const double value : test::last_values(*this, "weights/" + tensor, run))
      narrow.push_back(static_cast<float>(value));
    return narrow;
  }
  test::Outcome on_threads(int ranks, const Sets& sets) const {
    std::vector<std::string> words = {"train", "trial.toml", "--local-ranks", std::to_string(ranks)};
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    return echelon(words);
  }
  Weights weights;
};

const Sets kFrozen = {"model.weights=source.safetensors", R"(model.freeze=["conv1", "dense1"])",
                      "evaluate.every_epochs=0", "train.steps=5", "optimizer.weight_decay=0.1"};

void check_frozen(const Source& trial, const std::string& name) {
  for (const char* tensor : {"conv1.weight", "conv1.bias", "dense1.weight", "dense1.bias"}) {
    CAPTURE(tensor);
    CHECK(trial.values_of(name, tensor) == trial.weights.at(tensor).values);
  }
  for (const char* tensor : {"conv2.weight", "dense2.weight"}) {
    CAPTURE(tensor);
    CHECK(trial.values_of(name, tensor) != trial.weights.at(tensor).values);
  }
}

}  // namespace

TEST_CASE("frozen layers keep their bits under every strategy", "[run][freeze][slow]") {
  const Source trial;
  for (const StrategyTraits& strategy : kStrategies) {
    const std::string name(strategy.name);
    CAPTURE(name);
    const test::Outcome outcome =
        trial.on_threads(2, test::with(kFrozen, {"name=" + name, "exchange.strategy=" + name}));
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == kExitOk);
    CHECK_THAT(outcome.out, Contains("weights   8 tensors of source.safetensors") &&
                                Contains("frozen    conv1, dense1: 32,992 of 38,282 parameters") &&
                                !Contains("; drawn"));
    check_frozen(trial, name);
  }
}

TEST_CASE("frozen layers keep their bits under every codec and split, and are not sent", "[run][freeze][slow]") {
  const Source trial;
  const auto check = [&](const std::string& name, int ranks, const Sets& sets) {
    CAPTURE(name);
    const test::Outcome outcome = trial.on_threads(ranks, test::with(kFrozen, test::with(sets, {"name=" + name})));
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == kExitOk);
    check_frozen(trial, name);
  };
  for (const CodecTraits& codec : kCodecs)
    check("codec-" + std::string(codec.name), 2, {"exchange.codec=" + std::string(codec.name)});
  check("pipeline", 2, {"parallel.pipeline=2", "batch.accumulation=2"});
  check("tensor", 2, {"parallel.tensor=2"});
  check("space", 2, {"parallel.space=2"});
  check("mesh", 4, {"parallel.pipeline=2", "batch.accumulation=2"});
  check("first-stage", 2,
        {"parallel.pipeline=2", R"(model.freeze=["conv1", "dense1", "conv2.bias"])", "batch.accumulation=2"});
  const test::Outcome empty =
      trial.on_threads(4, test::with(kFrozen, {"name=empty", "parallel.pipeline=2", "batch.accumulation=2",
                                               R"(model.freeze=["conv*"])", "exchange.strategy=asynchronous"}));
  CHECK(empty.code == kExitConfig);
  CHECK_THAT(empty.err, Contains("stage 0 of parallel.pipeline = 2 has nothing to train"));
  check("plain", 2, {});
  const double sent = trial.summary("plain")["wire_bytes_per_step"];
  const test::Outcome all = trial.on_threads(2, {"name=all", "evaluate.every_epochs=0", "train.steps=5"});
  REQUIRE(all.code == kExitOk);
  const double whole = trial.summary("all")["wire_bytes_per_step"];
  CHECK(sent / whole == Approx((38282.0 - 32992) / 38282).epsilon(0.02));
}

TEST_CASE("k replicas with frozen layers have the weights of one", "[run][freeze][slow]") {
  const Source trial;
  const Sets exact = test::with(kFrozen, {"device.kind=reference", "device.dtype=f64", "train.steps=12"});
  const auto values = [&](const std::string& name, int ranks, const Sets& sets) {
    const test::Outcome outcome = trial.on_threads(ranks, test::with(exact, test::with(sets, {"name=" + name})));
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == kExitOk);
    return test::last_values(trial, "weights/", name);
  };
  const std::vector<double> one = values("one", 1, {});
  const std::vector<std::pair<int, Sets>> runs = {{3, {"exchange.overlap=layers"}},
                                                  {2, {"parallel.tensor=2"}},
                                                  {2, {"parallel.pipeline=2", "batch.accumulation=2"}},
                                                  {2, {"parallel.space=2"}}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    CAPTURE(i);
    const std::vector<double> other = values(fmt::format("k-{}", i), runs[i].first, runs[i].second);
    REQUIRE(other.size() == one.size());
    double distance = 0;
    for (std::size_t e = 0; e < one.size(); ++e) distance = std::max(distance, std::abs(one[e] - other[e]));
    CHECK(distance < 1e-8);
  }
}

TEST_CASE("a run begins from the weights of a run, a checkpoint or a file, and resumes without them",
          "[run][weights][slow]") {
  const Source trial;
  const std::string run = trial.run("source");
  int n = 0;
  std::vector<float> first;
  for (const std::string& from : {std::string("source.safetensors"), run, run + "/checkpoints/step-00000006.h5"}) {
    CAPTURE(from);
    const std::string name = fmt::format("from-{}", n++);
    const test::Outcome outcome =
        trial.train(2, {"name=" + name, "model.weights=" + from, "train.steps=3", "evaluate.every_epochs=0"});
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == kExitOk);
    const std::vector<float> values = trial.values_of(name, "dense2.weight");
    if (first.empty()) first = values;
    CHECK(values == first);
  }
  const json loss = trial.metrics("from-0").front()["loss"];
  fs::remove(trial / "source.safetensors");
  const Sets again = {"name=from-0", "model.weights=source.safetensors", "evaluate.every_epochs=0"};
  const test::Outcome resumed = trial.train(2, test::with(again, {"train.steps=5"}));
  INFO(resumed.out << resumed.err);
  CHECK(resumed.code == kExitOk);
  CHECK_THAT(resumed.out, Contains("resuming  from step 3"));
  CHECK(trial.metrics("from-0").front()["loss"] == loss);
  const test::Outcome gone = trial.train(0, {"name=gone", "model.weights=source.safetensors"});
  CHECK(gone.code == kExitConfig);
  CHECK_THAT(gone.err, Contains("model.weights") && Contains("does not exist"));
}

TEST_CASE("weights that do not fit are refused by name, or listed where parts are enough", "[run][weights][slow]") {
  const Source trial;
  Weights some = trial.weights;
  some["dense2.wieght"] = some["dense2.weight"];
  some.erase("dense2.weight");
  std::swap(some["conv1.weight"].shape[2], some["conv1.weight"].shape[1]);
  write_safetensors(trial / "some.safetensors", some);
  const auto refused = [&](const Sets& sets, const std::string& says) {
    const test::Outcome checked = trial.check(sets), trained = trial.on_threads(2, sets);
    INFO(checked.err << trained.err);
    CHECK(checked.code == kExitConfig);
    CHECK(trained.code == kExitConfig);
    CHECK_THAT(checked.err, Contains(says));
    CHECK_THAT(trained.err, Contains(says));
  };
  refused({"model.weights=some.safetensors"}, "'conv1.weight' is (16, 3, 1, 3), but this model needs (16, 1, 3, 3)");
  some["conv1.weight"].shape = trial.weights.at("conv1.weight").shape;
  write_safetensors(trial / "name.safetensors", some);
  refused({"model.weights=name.safetensors"}, "holds no 'dense2.weight' (the nearest is 'dense2.wieght')");
  some["dense2.weight"] = some["dense2.wieght"];
  write_safetensors(trial / "more.safetensors", some);
  refused({"model.weights=more.safetensors"}, "holds 'dense2.wieght', which this model does not have");
  refused({"model.weights=source.safetensors", "run.resume_from=" + trial.run("source")}, "both supply weights");
  refused({"model.weights_partial=true"}, "model.weights_partial is not used here");

  some = trial.weights;
  some["head"] = some["dense2.weight"];
  some.erase("dense2.weight");
  some["dense2.bias"].shape = {2, 5};
  write_safetensors(trial / "part.safetensors", some);
  const test::Outcome outcome =
      trial.on_threads(2, {"name=part", "model.weights=part.safetensors", "model.weights_partial=true",
                           "optimizer.learning_rate=0", "train.steps=1", "evaluate.every_epochs=0"});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == kExitOk);
  CHECK_THAT(outcome.out,
             Contains("6 tensors of part.safetensors; drawn because the file does not have them: dense2.weight; drawn "
                      "because the file has another shape: dense2.bias; not in the model: head"));
  CHECK(trial.values_of("part", "conv2.weight") == trial.weights.at("conv2.weight").values);
  CHECK(trial.values_of("part", "dense2.weight") != trial.weights.at("dense2.weight").values);
}

TEST_CASE("damaged files of weights are refused without a crash", "[run][weights][slow]") {
  const Source trial;
  const std::string good = read_file_whole(trial / "source.safetensors");
  const auto refused = [&](std::string file) {
    write_file_whole(trial / "bad.safetensors", file);
    const test::Outcome outcome = trial.check({"model.weights=bad.safetensors"});
    INFO(outcome.err);
    CHECK(outcome.code == kExitData);
    CHECK_THAT(outcome.err, Contains("bad.safetensors: is not a valid safetensors file"));
  };
  refused("");
  refused(good.substr(0, 100));
  refused(good.substr(0, good.size() - 4));
  std::string longer = good;
  longer[6] = 1;  // a header of 2^48 bytes
  refused(longer);
  std::string text = good;
  text.replace(text.find("data_offsets"), 12, "data_ofsfets");
  refused(text);
  // The format's own library refuses these too: values that no tensor names, or values elsewhere.
  refused(good + "four");
  std::uint64_t length = 0;
  std::memcpy(&length, good.data(), sizeof length);
  refused(good.substr(0, sizeof length + length) + "four" + good.substr(sizeof length + length));
}

TEST_CASE("weights that are no numbers are refused by name before training", "[run][weights][slow]") {
  const Source trial;
  for (const float value : {std::nanf(""), -HUGE_VALF}) {
    Weights bad = trial.weights;
    bad["conv2.weight"].values[3] = value;
    write_safetensors(trial / "bad.safetensors", bad);
    const Sets sets = {"model.weights=bad.safetensors"};
    for (const test::Outcome& outcome : {trial.check(sets), trial.on_threads(2, sets)}) {
      INFO(outcome.err);
      CHECK(outcome.code == kExitData);
      CHECK_THAT(outcome.err, Contains("bad.safetensors: value 3 of 'conv2.weight' is ") && !Contains("data.train"));
    }
  }
}

}  // namespace echelon
