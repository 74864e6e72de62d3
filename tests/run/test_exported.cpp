// SPDX-License-Identifier: Apache-2.0
// Trained models in other forms: as ONNX, compared in onnxruntime with `predict --outputs`, and with 8-bit weights.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "h5/file.hpp"
#include "tests/run/trial.hpp"
#include "tests/support/config_rows.hpp"
#include "tests/support/onnx_runtime.hpp"
#include "tests/support/skip.hpp"

namespace echelon::test {
namespace {

template <class T>
std::vector<double> dataset(const std::string& file, const char* name, DType dtype) {
  const h5::Reader reader(file);
  std::vector<T> values(static_cast<std::size_t>(reader.info(name).shape.elems()));
  reader.read_all(name, values.data(), dtype);
  return {values.begin(), values.end()};
}

OnnxValues outputs_of(const Trial& trial, const std::string& run, const std::string& data, const std::string& weights) {
  const std::string file = run + "-" + weights + ".h5";
  const Outcome outcome = trial.echelon(
      {"predict", "results/" + run, data, "--out", file, "--outputs", "--batch", "64", "--weights", weights});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == kExitOk);
  CHECK(h5::Reader(trial / file).attribute_text("weights") == weights);
  return {"f32", h5::Reader(trial / file).info("outputs").shape, dataset<float>(trial / file, "outputs", DType::f32)};
}

std::string exported(const Trial& trial, const std::string& run, const std::string& weights) {
  const std::string file = run + "-" + weights + ".onnx";
  const Outcome outcome =
      trial.echelon({"export", "results/" + run, "--format", "onnx", "--weights", weights, "--out", file});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == kExitOk);
  return trial / file;
}

void add_images(OnnxCases& cases, const Trial& trial) {
  std::vector<double> pixels = dataset<std::uint8_t>(trial / "test/shard-0.h5", "samples", DType::u8);
  for (double& pixel : pixels) pixel /= 16;
  const std::map<std::string, OnnxValues> inputs = {{"samples", {"f32", {201, 1, 8, 8}, pixels}}};
  REQUIRE(trial.train(2, {"name=split", "train.steps=12", "parallel.tensor=2"}).code == kExitOk);
  REQUIRE(trial.train(0, {"name=residual", "model.zoo=resnet20", "train.steps=4"}).code == kExitOk);
  for (const std::string run : {"split", "residual"})
    for (const std::string weights : {"trained", "int8"})
      cases.add(run + " " + weights, exported(trial, run, weights), inputs, outputs_of(trial, run, "test", weights));
}

// Makes a model on tokens; both kinds of sequence data have 7 different tokens.
std::string on_tokens(const std::string& data, const std::string& layers) {
  return "name = \"trial\"\n[data]\n" + data +
         "[batch]\nglobal = 7\n[train]\nsteps = 9\n[optimizer]\nrule = \"adam\"\n"
         "[device]\nkind = \"onednn\"\nthreads = 1\n[[model.layers]]\ntype = \"embedding\"\nunits = 5\n" +
         layers;
}

// Trains on windows of a text, in which each place has the next token as label.
std::string text_config() {
  return on_tokens("train = \"text/train\"\nsequence_length = 6\n", R"([[model.layers]]
type = "lstm"
units = 6
[[model.layers]]
type = "gru"
units = 9
[[model.layers]]
type = "dense"
units = 7
)");
}

void add_text(OnnxCases& cases, const Trial& trial) {
  write_row_data(trial / "");
  REQUIRE(trial.train(0).code == kExitOk);
  std::vector<double> tokens = dataset<std::int32_t>(trial / "text/test/a0.h5", "tokens", DType::i32);
  tokens.resize(tokens.size() / 6 * 6);
  const OnnxValues samples{"i32", {static_cast<std::int64_t>(tokens.size()) / 6, 6}, tokens};
  cases.add("text", exported(trial, "trial", "trained"), {{"samples", samples}},
            outputs_of(trial, "trial", "text/test", "trained"));
}

// Trains on sequences of different lengths, read in both directions, with one class each.
std::string sequence_config() {
  return on_tokens("train = \"sequences/train\"\n", R"([[model.layers]]
name = "on"
type = "lstm"
units = 6
[[model.layers]]
name = "back"
type = "rnn"
units = 4
reverse = true
inputs = ["embedding1"]
[[model.layers]]
type = "concat"
inputs = ["on.1", "back.1"]
[[model.layers]]
type = "dense"
units = 3
)");
}

void add_sequences(OnnxCases& cases, const Trial& trial) {
  write_row_data(trial / "");
  REQUIRE(trial.train(0).code == kExitOk);
  std::int64_t places = 0;
  for (const char* file : {"sequences/train/a0.h5", "sequences/train/a1.h5"})
    for (const double length : dataset<std::int32_t>(trial / file, "lengths", DType::i32))
      places = std::max(places, static_cast<std::int64_t>(length));
  const std::string test = trial / "sequences/test/a0.h5";
  const std::vector<double> lengths = dataset<std::int32_t>(test, "lengths", DType::i32),
                            tokens = dataset<std::int32_t>(test, "tokens", DType::i32);
  std::vector<double> padded;
  auto from = tokens.begin();
  for (const double length : lengths) {
    padded.insert(padded.end(), from, from + static_cast<std::ptrdiff_t>(length));
    padded.resize((padded.size() + static_cast<std::size_t>(places) - 1) / static_cast<std::size_t>(places) *
                  static_cast<std::size_t>(places));
    from += static_cast<std::ptrdiff_t>(length);
  }
  const auto n = static_cast<std::int64_t>(lengths.size());
  for (const std::string weights : {"trained", "int8"})
    cases.add("sequences " + weights, exported(trial, "trial", weights),
              {{"samples", {"i32", {n, places}, padded}}, {"lengths", {"i32", {n}, lengths}}},
              outputs_of(trial, "trial", "sequences/test", weights));
}

}  // namespace

TEST_CASE("onnxruntime finds what predict finds, for images, texts and sequences", "[export][python][slow]") {
  if (skip_without(has_onnx_runtime(), Lacks::package, "needs the Python packages onnx and onnxruntime")) return;
  const Trial images, text(text_config()), sequences(sequence_config());
  OnnxCases cases;
  add_images(cases, images);
  add_text(cases, text);
  add_sequences(cases, sequences);
  const auto distances = cases.run();
  CHECK(distances.size() == 7);
  for (const auto& [name, distance] : distances) {
    INFO(name);
    CHECK(distance <= 1e-5);
  }
}

TEST_CASE("formats and forms of weights that do not exist, and layers without a form, are refused", "[export]") {
  const Trial trial(R"(name = "trial"
[data]
train = "train"
[batch]
global = 50
[train]
steps = 1
[[model.layers]]
type = "lrn"
size = 2
[[model.layers]]
type = "flatten"
[[model.layers]]
type = "dense"
units = 10
)");
  std::filesystem::create_directories(trial / "train");
  write_shard(trial / "train/shard-0.h5", 100, "train");
  REQUIRE(trial.train(0).code == kExitOk);
  const auto refused = [&](const std::vector<std::string>& words) {
    const Outcome outcome = trial.echelon(words);
    CHECK(outcome.code == kExitConfig);
    return outcome.err;
  };
  CHECK_THAT(refused({"export", "results/trial", "--format", "onx"}), Catch::Contains("did you mean 'onnx'?"));
  CHECK_THAT(refused({"eval", "results/trial", "train", "--weights", "int4"}), Catch::Contains("trained, int8"));
  CHECK_THAT(refused({"eval", "results/trial", "--follow", "--weights", "int8"}), Catch::Contains("for one model"));
  CHECK_THAT(refused({"export", "results/trial", "--format", "onnx", "--out", "m.onnx"}),
             Catch::Contains("config.toml:") && Catch::Contains("layer 'lrn1' (lrn): size = 2"));
  CHECK_FALSE(std::filesystem::exists(trial / "m.onnx"));
}

TEST_CASE("8-bit weights: accuracy within a point, a quarter of the bytes, the same bits on any number of ranks",
          "[export][predict][slow]") {
  const Trial trial;
  REQUIRE(trial.train(0).code == kExitOk);
  const auto evaluated = [&](int ranks) {
    const Outcome outcome =
        trial.echelon({"eval", "results/trial", "test", "--weights", "int8", "--batch", "64", "--threads", "1"}, ranks);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == kExitOk);
    const auto row = [&](const char* name) {
      const std::size_t at = outcome.out.find(std::string("\n") + name + " ");
      REQUIRE(at != std::string::npos);
      char bytes[32] = {};
      double loss = 0, accuracy = 0, p50 = 0, p99 = 0;
      REQUIRE(std::sscanf(outcome.out.c_str() + at + std::strlen(name) + 1, "%31s %lf %lf %lf %lf", bytes, &loss,
                          &accuracy, &p50, &p99) == 5);
      CHECK((p50 > 0 && p50 <= p99));
      std::string digits = bytes;
      std::erase(digits, ',');
      return std::array<double, 3>{std::stod(digits), loss, accuracy};
    };
    return std::array{row("f32"), row("int8")};
  };
  const auto alone = evaluated(0);
  CHECK(alone[0][2] == Approx(100 * trial.summary()["test_accuracy"].get<double>()).margin(0.006));
  CHECK(std::fabs(alone[1][2] - alone[0][2]) <= 1);
  CHECK(alone[1][1] != alone[0][1]);
  CHECK(alone[1][0] < 0.27 * alone[0][0]);
  CHECK(evaluated(2) == alone);

  const OnnxValues one = outputs_of(trial, "trial", "test", "int8");
  CHECK(one.values != outputs_of(trial, "trial", "test", "trained").values);
  const Outcome shared = trial.echelon({"predict", "results/trial", "test", "--out", "two.h5", "--outputs", "--batch",
                                        "64", "--weights", "int8", "--threads", "1"},
                                       2);
  INFO(shared.out << shared.err);
  REQUIRE(shared.code == kExitOk);
  const Outcome lone = trial.echelon({"predict", "results/trial", "test", "--out", "one.h5", "--outputs", "--batch",
                                      "64", "--weights", "int8", "--threads", "1"});
  REQUIRE(lone.code == kExitOk);
  CHECK(dataset<float>(trial / "two.h5", "outputs", DType::f32) ==
        dataset<float>(trial / "one.h5", "outputs", DType::f32));
}

TEST_CASE("a file whose name is that of the other format is refused with the name that fits", "[export]") {
  const Trial trial;
  REQUIRE(trial.train(0, {"train.steps=2"}).code == kExitOk);
  const auto refused = [&](const std::string& format, const std::string& out, const std::string& better) {
    const Outcome outcome = trial.echelon({"export", "results/trial", "--format", format, "--out", out});
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == kExitConfig);
    CHECK_THAT(outcome.err, Catch::Contains("--out " + out + ": ") && Catch::Contains("--out " + better));
    CHECK_FALSE(std::filesystem::exists(trial / out));
  };
  refused("onnx", "x.safetensors", "x.onnx");
  refused("safetensors", "x.v2.onnx", "x.v2.safetensors");
  for (const auto& [format, out] : {std::pair("onnx", "x.onnx"), {"safetensors", "x.safetensors"}, {"onnx", "model"}})
    CHECK(trial.echelon({"export", "results/trial", "--format", format, "--out", out}).code == kExitOk);
}

TEST_CASE("a safetensors file with 8-bit weights holds numbers and scales of every matrix", "[export]") {
  const Trial trial;
  REQUIRE(trial.train(0, {"train.steps=5"}).code == kExitOk);
  REQUIRE(trial.echelon({"export", "results/trial", "--weights", "int8", "--out", "m.safetensors"}).code == kExitOk);
  const std::string file = read_file_whole(trial / "m.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const auto header = nlohmann::json::parse(file.substr(sizeof length, length));
  const auto at = [&](const std::string& name) {
    return file.data() + sizeof length + length + header[name]["data_offsets"][0].get<std::size_t>();
  };
  const std::string checkpoint = trial.run() + "/checkpoints/step-00000005.h5";
  int matrices = 0, others = 0;
  std::size_t end = 0;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    end = std::max(end, tensor["data_offsets"][1].get<std::size_t>());
    if (name.ends_with(".scale")) continue;
    const std::vector<double> trained = checkpoint_values(checkpoint, "weights/" + name);
    REQUIRE(!trained.empty());
    if (tensor["dtype"] == "F32") {
      ++others;
      CHECK(name.ends_with(".bias"));
      for (std::size_t i = 0; i < trained.size(); ++i) {
        float value = 0;
        std::memcpy(&value, at(name) + i * sizeof value, sizeof value);
        REQUIRE(static_cast<double>(value) == trained[i]);
      }
      continue;
    }
    ++matrices;
    CHECK(tensor["dtype"] == "I8");
    const std::size_t rows = tensor["shape"][0];
    REQUIRE(header[name + ".scale"]["shape"] == nlohmann::json({rows}));
    for (std::size_t i = 0; i < trained.size(); ++i) {
      float scale = 0;
      std::memcpy(&scale, at(name + ".scale") + i / (trained.size() / rows) * sizeof scale, sizeof scale);
      const auto number = static_cast<signed char>(at(name)[i]);
      REQUIRE(std::fabs(trained[i] - number * static_cast<double>(scale)) <= static_cast<double>(scale) * 0.500001);
    }
  }
  CHECK(matrices == 4);
  CHECK(others == 4);
  CHECK(sizeof length + length + end == file.size());
}

}  // namespace echelon::test
