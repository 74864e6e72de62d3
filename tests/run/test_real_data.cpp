// SPDX-License-Identifier: Apache-2.0
// Published data sets, where they are available: ECHELON_REAL_DATA names a folder with tinyshakespeare/input.txt,
// names/<language>.txt, japanese-vowels/JapaneseVowels_{TRAIN,TEST}.ts, and the unpacked wheels of PyPI's
// iris-sample-data and esmvaltool-sample-data.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "tests/run/trial.hpp"
#include "tests/support/skip.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

std::string real_data(const std::string& name) {
  const char* folder = std::getenv("ECHELON_REAL_DATA");
  return folder == nullptr ? "" : fs::absolute(fs::path(folder) / name).string();
}

bool missing(const std::string& path) {
  return test::skip_without(!path.empty() && fs::exists(path), test::Lacks::data,
                            "needs published sets in the folder ECHELON_REAL_DATA");
}

constexpr const char* kVowels = R"(name = "trial"
[model]
zoo = "sequence_classifier"
[data]
train = "train"
test = "test"
buckets = [12, 16, 20]
[batch]
global = 30
[train]
epochs = 15
[optimizer]
rule = "adam"
learning_rate = 2e-3
schedule = "cosine"
[evaluate]
every_epochs = 0
)";

TEST_CASE("a whole play is imported, character by character", "[run][real]") {
  const std::string text = real_data("tinyshakespeare/input.txt");
  if (missing(text)) return;
  const test::Trial trial(kVowels);
  CHECK_THAT(trial.make_data({"import", "text", text, "--hold-out-part", "0.1", "--out", "text"}),
             Contains("1,115,394 tokens of 65 kinds") && Contains("the last 111,539"));
}

TEST_CASE("surnames of 18 languages, letters outside ASCII included", "[run][real]") {
  const std::string names = real_data("names");
  if (missing(names)) return;
  const test::Trial trial(kVowels);
  CHECK_THAT(trial.make_data({"import", "sequences", names, "--out", "names"}),
             Contains("20,050 sequences of 2 to 20 steps") && Contains("18 classes"));
}

TEST_CASE("an LSTM tells nine speakers apart", "[run][real][slow]") {
  const std::string folder = real_data("japanese-vowels");
  if (missing(folder)) return;
  const test::Trial trial(kVowels);
  CHECK_THAT(trial.make_data({"import", "sequences", folder + "/JapaneseVowels_TRAIN.ts", "--out", "train"}),
             Contains("270 sequences of 7 to 26 steps") && Contains("12 features, 9 classes"));
  trial.make_data({"import", "sequences", folder + "/JapaneseVowels_TEST.ts", "--out", "test"});
  const test::Outcome outcome = trial.train(2);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(trial.summary()["test_accuracy"].get<double>() > 0.9);
}

TEST_CASE("climate models' netCDF files train as they lie, and forecasts beat persistence", "[run][real]") {
  const auto [name, data, samples, persistence] = GENERATE(table<std::string, std::string, std::string, double>(
      {{"next_month", "esmvaltool_sample_data", "1,499 samples of (2, 3, 2)", 0.2633},
       {"next_year", "iris_sample_data", "358 samples of (1, 37, 49)", 0.00556}}));
  if (missing(real_data(data))) return;
  const std::string config = fs::absolute("configs/science/" + name + ".toml").string();
  const test::Trial trial(kVowels);
  fs::create_directory(trial / "data");
  fs::create_directory_symlink(real_data(data), trial / ("data/" + data));
  for (const auto& file : fs::recursive_directory_iterator(real_data(data)))
    if (file.path().filename() == "ta_Amon_TaiESM1_historical_r1i1p1f1_gn_185001-201412.nc")
      fs::create_symlink(file.path(), trial / "data/taiesm1.nc");
  CHECK_THAT(trial.echelon({"check", config}).out, Contains(samples));
  const bool month = name == "next_month";  // the other one takes half a minute
  const test::Outcome run = trial.echelon({"train", config, "--set", month ? "train.epochs=20" : "train.steps=5"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  if (month) CHECK(trial.summary(name)["test_loss"].get<double>() < persistence);
}

}  // namespace
}  // namespace echelon
