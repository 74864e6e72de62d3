// A trained model used: predict, eval and export on what a real run left; and a sweep over batch sizes.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "h5/file.hpp"
#include "tests/run/trial.hpp"

namespace echelon::test {
namespace {

namespace fs = std::filesystem;

Outcome run(const Trial& trial, const std::vector<std::string>& words, double limit_s = 60) {
  std::vector<std::string> argv = {echelon_binary()};
  argv.insert(argv.end(), words.begin(), words.end());
  return run_process({.argv = argv, .cwd = trial / "", .env = {}, .limit_s = limit_s});
}

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

  // 64 does not divide 201: the last pass is filled up, and what fills it must not be counted.
  const Outcome predicted =
      run(trial, {"predict", "results/trial", "test", "--out", "p.h5", "--outputs", "--batch", "64"});
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

  const Outcome evaluated = run(trial, {"eval", trial.run(), "test", "--sharpness", "1e-2", "--batch", "100"});
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
      run(trial, {"export", trial.run() + "/checkpoints/step-00000051.h5", "--out", "m.safetensors"});
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

TEST_CASE("what is no trained model is refused with what would be one", "[predict]") {
  const Trial trial;
  const Outcome nothing = run(trial, {"predict", "train", "test", "--out", "p.h5"});
  CHECK(nothing.code == kExitConfig);
  CHECK_THAT(nothing.err, Catch::Contains("holds no trained model") && Catch::Contains("run-HASH"));
  CHECK(run(trial, {"export", "nowhere"}).code == kExitConfig);
  CHECK(!fs::exists(trial / "p.h5"));
}

TEST_CASE("a sweep over batch sizes: a row a size, targets reached and not", "[predict][slow]") {
  const Trial trial;
  const Outcome swept = run(trial, {"sweep", "batch", "trial.toml", "--sizes", "24,48,400", "--target", "0.9", "--set",
                                    "train.epochs=2", "--out", "sweep.md"});
  INFO(swept.out << swept.err);
  REQUIRE(swept.code == kExitOk);
  const std::string table = read_file_whole(trial / "sweep.md");
  for (const char* cell : {" 24 |", " 48 |", " 400 |", "not reached", "useful"})
    CHECK_THAT(table, Catch::Contains(cell));
  CHECK(run(trial, {"sweep", "batch", "trial.toml", "--sizes", "48,24"}).code == kExitConfig);
}

}  // namespace echelon::test
