// SPDX-License-Identifier: Apache-2.0
// Published data sets, where they are available: ECHELON_REAL_DATA names a folder with tinyshakespeare/input.txt,
// names/<language>.txt and japanese-vowels/JapaneseVowels_{TRAIN,TEST}.ts.
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

}  // namespace
}  // namespace echelon
