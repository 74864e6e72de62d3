// SPDX-License-Identifier: Apache-2.0
// predict, eval and export on a model that a real run trained; and a sweep over batch sizes.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "h5/file.hpp"
#include "tests/run/trial.hpp"
#include "tests/support/python.hpp"
#include "tests/support/skip.hpp"

namespace echelon::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::int32_t> labels_of(const Trial& trial, const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(trial / folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::int32_t> all;
  for (const std::string& file : files) {
    const h5::Reader reader(file);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(reader.info("labels").shape[0]));
    reader.read_all("labels", labels.data(), DType::i32);
    all.insert(all.end(), labels.begin(), labels.end());
  }
  return all;
}

}  // namespace

TEST_CASE("predictions, evaluation and export agree with the run that trained the model", "[predict][slow]") {
  const Trial trial;
  REQUIRE(trial.train(0).code == kExitOk);
  const double accuracy = trial.summary()["test_accuracy"];

  // 64 does not divide 201: the last pass is filled up, and the filling must not be counted.
  const Outcome predicted =
      trial.echelon({"predict", "results/trial", "test", "--out", "p.h5", "--outputs", "--batch", "64"});
  INFO(predicted.out << predicted.err);
  REQUIRE(predicted.code == kExitOk);
  const auto labels = labels_of(trial, "test");
  const h5::Reader reader(trial / "p.h5");
  REQUIRE(reader.info("predictions").shape == Shape{201});
  REQUIRE(reader.info("outputs").shape == Shape{201, 10});
  std::vector<std::int32_t> chosen(201);
  std::vector<float> outputs(2010);
  reader.read_all("predictions", chosen.data(), DType::i32);
  reader.read_all("outputs", outputs.data(), DType::f32);
  double right = 0;
  for (std::size_t i = 0; i < 201; ++i) {
    right += chosen[i] == labels[i] ? 1 : 0;
    const auto row = outputs.begin() + static_cast<std::ptrdiff_t>(10 * i);
    CHECK(std::max_element(row, row + 10) - row == chosen[i]);
    CHECK(std::accumulate(row, row + 10, 0.0) == Approx(1).epsilon(1e-5));
  }
  CHECK(right / 201 == Approx(accuracy));

  const Outcome evaluated = trial.echelon({"eval", trial.run(), "test", "--sharpness", "1e-2", "--batch", "100"});
  INFO(evaluated.out << evaluated.err);
  REQUIRE(evaluated.code == kExitOk);
  CHECK_THAT(evaluated.out, Catch::Contains(fmt::format("accuracy {:.2f} %", 100 * accuracy)));
  double sharpness = 0, box = 0, loss = 0, highest = 0;
  const char* line = std::strstr(evaluated.out.c_str(), "sharpness ");
  REQUIRE(line != nullptr);
  REQUIRE(std::sscanf(line, "sharpness %lf in the box of %lf (|w| + 1): loss %lf rises to %lf", &sharpness, &box, &loss,
                      &highest) == 4);
  CHECK(box == 1e-2);
  CHECK(highest > loss);
  CHECK(sharpness == Approx(100 * (highest - loss) / (1 + loss)).epsilon(1e-2));

  const Outcome exported =
      trial.echelon({"export", trial.run() + "/checkpoints/step-00000051.h5", "--out", "m.safetensors"});
  INFO(exported.out << exported.err);
  REQUIRE(exported.code == kExitOk);
  const std::string file = read_file_whole(trial / "m.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const auto header = nlohmann::json::parse(file.substr(sizeof length, length));
  const std::vector<double> trained = checkpoint_values(trial.run() + "/checkpoints/step-00000051.h5", "weights/");
  std::size_t elems = 0;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    const std::size_t begin = tensor["data_offsets"][0], end = tensor["data_offsets"][1];
    for (std::size_t at = begin; at < end; at += sizeof(float), ++elems) {
      float value = 0;
      std::memcpy(&value, file.data() + sizeof length + length + at, sizeof value);
      REQUIRE(static_cast<double>(value) == trained.at(begin / sizeof(float) + (at - begin) / sizeof(float)));
    }
  }
  CHECK(elems == trained.size());
  CHECK(header["conv1.weight"]["shape"] == nlohmann::json({16, 1, 3, 3}));
}

TEST_CASE("the library of safetensors reads the exported weights", "[predict][python]") {
  const Trial trial;
  if (skip_without(has_module("safetensors.numpy"), Lacks::package, "needs the Python package safetensors")) return;
  REQUIRE(trial.train(0, {"train.steps=2"}).code == kExitOk);
  REQUIRE(trial.echelon({"export", trial.run(), "--out", "m.safetensors"}).code == kExitOk);
  std::string trained;  // weights in the order of their names
  for (const double value : checkpoint_values(trial.run() + "/checkpoints/step-00000002.h5", "weights/")) {
    const auto narrow = static_cast<float>(value);
    trained.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
  }
  write_file_whole(trial / "trained.f32", trained);
  const Outcome read = python({"-c", R"(
import numpy
from safetensors.numpy import load_file
tensors = load_file("m.safetensors")
mine = numpy.concatenate([tensors[name].ravel() for name in sorted(tensors)])
trained = numpy.fromfile("trained.f32", numpy.float32)
assert mine.dtype == numpy.float32 and numpy.array_equal(mine, trained), "other values than the checkpoint's"
assert tensors["conv1.weight"].shape == (16, 1, 3, 3) and tensors["conv1.bias"].shape == (16,)  # as PyTorch's Conv2d
print("read", len(tensors))
)"},
                              trial / "");
  INFO(read.out << read.err);
  CHECK(read.code == 0);
  CHECK_THAT(read.out, Catch::StartsWith("read "));
}

TEST_CASE("several ranks share the data, find the bits of one and print once", "[predict][slow]") {
  const Trial trial;
  REQUIRE(trial.train(0, {"train.epochs=1"}).code == kExitOk);
  const auto predict = [&](int ranks, const std::string& out) {
    const std::vector<std::string> words = {"predict",   "results/trial", "test", "--out",     out,
                                            "--outputs", "--batch",       "64",   "--threads", "1"};
    const Outcome outcome = trial.echelon(words, ranks);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == kExitOk);
    const std::size_t first = outcome.out.find("\nloss ");
    REQUIRE(first != std::string::npos);
    CHECK(outcome.out.find("\nloss ", first + 1) == std::string::npos);
    if (ranks > 0)
      CHECK_THAT(outcome.out, Catch::Contains(fmt::format("ranks    {} of {}", std::min(ranks, 4), ranks)));
    return h5::Reader(trial / out);
  };
  const auto values = [](const h5::Reader& reader, const char* name, std::size_t count) {
    std::vector<float> all(count);
    reader.read_all(name, all.data(), DType::f32);
    return all;
  };
  const h5::Reader alone = predict(0, "alone.h5");
  for (const int ranks : {2, 3, 5}) {  // 4 batches: two each; the last step is not full; one rank gets none
    INFO(ranks << " ranks");
    const h5::Reader shared = predict(ranks, fmt::format("{}.h5", ranks));
    CHECK(shared.attribute_double("loss") == alone.attribute_double("loss"));
    CHECK(shared.attribute_double("accuracy") == alone.attribute_double("accuracy"));
    std::vector<std::int32_t> chosen[2] = {std::vector<std::int32_t>(201), std::vector<std::int32_t>(201)};
    alone.read_all("predictions", chosen[0].data(), DType::i32);
    shared.read_all("predictions", chosen[1].data(), DType::i32);
    CHECK(chosen[0] == chosen[1]);
    CHECK(values(shared, "outputs", 2010) == values(alone, "outputs", 2010));
  }

  const Outcome outcome = trial.echelon({"eval", "results/trial", "nowhere"}, 2);
  CHECK(outcome.code == kExitData);
  const std::size_t first = outcome.err.find("echelon: error: nowhere: ");
  REQUIRE(first != std::string::npos);
  CHECK(outcome.err.find("echelon: error:", first + 1) == std::string::npos);
}

TEST_CASE("a model brings its normalisation, and a damaged one is refused by every verb", "[predict][slow]") {
  const Trial trial;
  REQUIRE(trial.train(0, {"train.epochs=1"}).code == kExitOk);
  const Outcome before = trial.echelon({"eval", "results/trial", "test"});
  REQUIRE(before.code == kExitOk);
  fs::rename(trial / "train", trial / "gone");
  // The test set has its own statistics, which must not be used.
  const std::string test = trial / "test/shard-0.h5";
  {
    std::vector<std::uint8_t> samples(201 * 64);
    const std::vector<std::int32_t> labels = labels_of(trial, "test");
    h5::Reader(test).read_all("samples", samples.data(), DType::u8);
    h5::Writer writer(test);
    writer.attribute("format", std::string("echelon-samples"));
    writer.attribute("version", std::int64_t{1});
    writer.attribute("classes", std::int64_t{10});
    writer.attribute("scale", 1.0 / 16);
    writer.attribute("mean", std::vector<double>{0.4});
    writer.attribute("std", std::vector<double>{0.2});
    writer.write_all("samples", DType::u8, {201, 1, 8, 8}, samples.data(), {.chunk_rows = 64});
    writer.write_all("labels", DType::i32, {201}, labels.data(), {.chunk_rows = 64});
    writer.publish();
  }
  const Outcome after = trial.echelon({"eval", "results/trial", "test"});
  INFO(before.out << after.out << after.err);
  REQUIRE(after.code == kExitOk);
  const auto figures = [](const std::string& text) { return text.substr(0, text.find("speed")); };
  CHECK(figures(after.out) == figures(before.out));

  REQUIRE(trial.echelon({"export", "results/trial", "--out", "m.safetensors"}).code == kExitOk);
  const std::string file = read_file_whole(trial / "m.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const auto header = nlohmann::json::parse(file.substr(sizeof length, length));
  const auto trained = nlohmann::json::parse(header["__metadata__"]["training_data"].get<std::string>());
  CHECK(trained["mean"] == nlohmann::json({0.0}));
  CHECK(trained["std"] == nlohmann::json({1.0}));
  CHECK(trained["classes"] == 10);

  const std::string checkpoint = trial.run() + "/checkpoints/step-00000017.h5";
  std::string bytes = read_file_whole(checkpoint);
  const float weight = static_cast<float>(checkpoint_values(checkpoint, "weights/conv1.weight").at(3));
  const auto at = bytes.find(std::string(reinterpret_cast<const char*>(&weight), sizeof weight));
  REQUIRE(at != std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  write_file_whole(checkpoint, bytes);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"eval", checkpoint, "test"}, {"predict", checkpoint, "test", "--out", "p.h5"}, {"export", checkpoint}}) {
    const Outcome refused = trial.echelon(words);
    INFO(words[0] << refused.out << refused.err);
    CHECK(refused.code == kExitData);
    CHECK_THAT(refused.err, Catch::Contains("step-00000017.h5 is damaged"));
  }
  CHECK(!fs::exists(trial / "p.h5"));
  const Outcome passed_over = trial.echelon({"eval", "results/trial", "test"});
  CHECK(passed_over.code == kExitOk);
  CHECK_THAT(passed_over.out, Catch::Contains("at step 15"));
  for (const auto& entry : fs::directory_iterator(trial.run() + "/checkpoints"))
    if (entry.path().extension() == ".h5") fs::resize_file(entry.path(), fs::file_size(entry.path()) / 2);
  const Outcome none = trial.echelon({"eval", "results/trial", "test"});
  INFO(none.err);
  CHECK(none.code == kExitData);
  CHECK_THAT(none.err, Catch::Contains("holds no good checkpoint: all 2 are damaged"));
}

TEST_CASE("predict needs no labels and eval does", "[predict]") {
  const Trial trial;
  REQUIRE(trial.train(0, {"train.steps=5"}).code == kExitOk);
  std::vector<std::uint8_t> samples(201 * 64);
  h5::Reader(trial / "test/shard-0.h5").read_all("samples", samples.data(), DType::u8);
  fs::create_directories(trial / "plain");
  {
    h5::Writer writer(trial / "plain/shard-0.h5");
    writer.attribute("scale", 1.0 / 16);
    writer.write_all("samples", DType::u8, {201, 1, 8, 8}, samples.data(), {.chunk_rows = 64});
    writer.publish();
  }
  const auto predicted = [&](const std::string& data, const std::string& out, const char* told) {
    const Outcome outcome = trial.echelon({"predict", "results/trial", data, "--out", out, "--outputs"});
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == kExitOk);
    CHECK_THAT(outcome.out, Catch::Contains(told) && !Catch::Contains("nan"));
    return checkpoint_values(trial / out, "");
  };
  CHECK(predicted("plain", "plain.h5", "labels   none") == predicted("test", "test.h5", "accuracy "));
  CHECK_FALSE(h5::Reader(trial / "plain.h5").has_attribute("loss"));
  CHECK(h5::Reader(trial / "test.h5").has_attribute("loss"));
  const Outcome refused = trial.echelon({"eval", "results/trial", "plain"});
  CHECK(refused.code == kExitData);
  CHECK_THAT(refused.err, Catch::Contains("plain/shard-0.h5: dataset 'labels' is missing"));
  const Outcome untrained = trial.train(0, {"name=other", "data.test=plain"});
  CHECK(untrained.code == kExitData);
  CHECK_THAT(untrained.err, Catch::Contains("dataset 'labels' is missing"));
}

TEST_CASE("paths that no file system resolves are an environment error, not a defect", "[predict]") {
  const Trial trial;
  fs::create_symlink("loop", trial / "loop");
  for (const std::string& path : {std::string(5000, 'x'), std::string("loop"), std::string("loop/run-1")}) {
    const Outcome outcome = trial.echelon({"eval", path, "test"});
    INFO(outcome.err);
    CHECK(outcome.code == kExitEnvironment);
    CHECK_THAT(outcome.err, Catch::Contains("cannot be read: "));
  }
  CHECK(trial.train(0, {"run.results=" + std::string(5000, 'x')}).code == kExitEnvironment);
  CHECK(trial.train(0, {"run.results=loop/results"}).code == kExitEnvironment);
}

TEST_CASE("a path without a trained model is refused with the expected form", "[predict]") {
  const Trial trial;
  const Outcome nothing = trial.echelon({"predict", "train", "test", "--out", "p.h5"});
  CHECK(nothing.code == kExitConfig);
  CHECK_THAT(nothing.err, Catch::Contains("holds no trained model") && Catch::Contains("run-HASH"));
  CHECK(trial.echelon({"export", "nowhere"}).code == kExitConfig);
  CHECK(!fs::exists(trial / "p.h5"));
}

TEST_CASE("a sweep over batch sizes: a row a size and rule, targets reached and not", "[predict][slow]") {
  const Trial trial;
  const std::vector<std::string> words = {"sweep",          "batch",       "trial.toml", "--sizes", "24,48,400",
                                          "--scaling",      "linear,sqrt", "--target",   "0.9",     "--set",
                                          "train.epochs=2", "--out",       "sweep.md"};
  const Outcome swept = trial.echelon(words);
  INFO(swept.out << swept.err);
  REQUIRE(swept.code == kExitOk);
  const std::string table = read_file_whole(trial / "sweep.md");
  for (const char* cell : {" 24 |", " as tuned ", " linear ", " sqrt ", "not reached", "useful with sqrt"})
    CHECK_THAT(table, Catch::Contains(cell));
  const Outcome again = trial.echelon(words);
  CHECK(again.code == kExitOk);
  CHECK_THAT(again.out, Catch::Contains("5 done before"));
  CHECK(read_file_whole(trial / "sweep.md") == table);
  const Outcome own = trial.echelon({"sweep", "batch", "trial.toml", "--target", "0.01", "--set", "train.epochs=0",
                                     "--set", "train.steps=2", "--out", "own.md"});
  INFO(own.out << own.err);
  REQUIRE(own.code == kExitOk);
  for (const char* size : {"| 48 |", "| 96 |", "| 192 |"})  // without --sizes: the config's, two and four times it
    CHECK_THAT(replaced(replaced(read_file_whole(trial / "own.md"), "  ", " "), "  ", " "), Catch::Contains(size));
  CHECK(trial.echelon({"sweep", "batch", "trial.toml", "--sizes", "48,24"}).code == kExitConfig);
  CHECK_THAT(trial.echelon({"sweep", "batch", "trial.toml", "--scaling", "linar"}).err,
             Catch::Contains("did you mean 'linear'?"));
}

TEST_CASE("the largest micro-batch is what a run allocates, and one more is refused", "[predict][memory]") {
  const Trial trial;
  const std::string limit = "device.memory_limit_mb=3";
  const Outcome found = trial.echelon({"sweep", "micro", "trial.toml", "--ranks", "2", "--set", limit});
  INFO(found.out << found.err);
  REQUIRE(found.code == kExitOk);
  const std::size_t at = found.out.find("batch.global = ");
  REQUIRE(at != std::string::npos);
  const std::int64_t batch = std::stoll(found.out.substr(at + 15));
  CHECK_THAT(found.out, Catch::Contains("micro-batch " + std::to_string(batch / 2)) && Catch::Contains("too much"));
  const auto of = [](std::int64_t global) { return "batch.global=" + std::to_string(global); };
  const Outcome fits = trial.train(2, {of(batch), limit, "train.steps=2"});
  INFO(fits.out << fits.err);
  CHECK(fits.code == kExitOk);
  const double peak = trial.summary()["device_peak_mb"].at(0);
  CHECK(peak <= 3);
  CHECK(peak > 2.5);
  CHECK(trial.train(2, {of(batch + 2), limit, "train.steps=2", "name=more"}).code == kExitMemory);
  CHECK_THAT(trial.echelon({"sweep", "micro", "trial.toml", "--memory", "1KiB"}).err, Catch::Contains("is less than"));
  CHECK_THAT(trial.echelon({"sweep", "micro", "trial.toml", "--memory", "1GiB"}).out,
             Catch::Contains("no more samples"));
}

}  // namespace echelon::test
