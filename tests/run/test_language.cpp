// SPDX-License-Identifier: Apache-2.0
// Text written by trained models: predict --generate, predict --beam, BLEU in eval.
#include <algorithm>
#include <catch2/catch.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "h5/file.hpp"
#include "tests/run/trial.hpp"

namespace echelon::test {
namespace {

using Catch::Matchers::Contains;

constexpr const char* kText = R"(name = "trial"
[data]
train = "text"
sequence_length = 8
[batch]
global = 8
[train]
epochs = 2
[optimizer]
rule = "adam"
learning_rate = 0.02
[[model.layers]]
type = "embedding"
units = 12
[[model.layers]]
type = "lstm"
units = 24
[[model.layers]]
type = "dense"
units = 9
)";

constexpr const char* kPairs = R"(name = "trial"
[data]
train = "pairs/train"
test = "pairs/test"
[batch]
global = 32
[train]
epochs = 5
[optimizer]
rule = "adam"
learning_rate = 0.02
[[model.layers]]
type = "embedding"
units = 8
[[model.layers]]
name = "encoder"
type = "lstm"
units = 32
[[model.layers]]
name = "words"
type = "embedding"
units = 8
inputs = ["target"]
[[model.layers]]
type = "lstm"
units = 32
inputs = ["words", "encoder.1", "encoder.2"]
[[model.layers]]
type = "dense"
units = 32
)";

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// Returns the sources in a shard of made-up numbers, one per line.
std::string sources_in(const std::string& shard) {
  const h5::Reader reader(shard);
  std::vector<std::int32_t> digits(static_cast<std::size_t>(reader.info("tokens").shape[0]));
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(reader.info("lengths").shape[0]));
  reader.read_all("tokens", digits.data(), DType::i32);
  reader.read_all("lengths", lengths.data(), DType::i32);
  std::string lines;
  auto digit = digits.begin();
  for (const std::int32_t length : lengths) {
    for (std::int32_t i = 0; i < length; ++i) lines += static_cast<char>('0' + *digit++);
    lines += '\n';
  }
  return lines;
}

// Reads "BLEU 12.34" in the output of eval and predict.
double bleu_in(const std::string& text) {
  const auto at = text.find("BLEU");
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + 4));
}

}  // namespace

TEST_CASE("a language model writes what it has read, for a seed the same on any number of ranks", "[predict]") {
  const Trial trial(kText);
  write_file_whole(trial / "book.txt", repeated("abcdefgh\n", 120));
  trial.make_data({"import", "text", "book.txt", "--out", "text"});
  REQUIRE(trial.train(0).code == kExitOk);
  const auto written = [&](std::vector<std::string> more, int ranks = 0) {
    more.insert(more.begin(), {"predict", "results/trial", "--generate", "30"});
    const Outcome outcome = trial.echelon(more, ranks);
    INFO(outcome.err);
    CHECK(outcome.code == kExitOk);
    return outcome.out;
  };
  const std::string greedy = "cdefgh\nabcdefgh\nabcdefgh\nabcdefg\n";  // longer than the windows of 8
  CHECK(written({"--prompt", "cd", "--temperature", "0", "--out", "copy.txt"}) == greedy.substr(0, 32) + "\n");
  CHECK(read_file_whole(trial / "copy.txt") == greedy.substr(0, 32) + "\n");
  CHECK(written({"--temperature", "0"}) == repeated("abcdefgh\n", 4).substr(0, 30) + "\n");
  const std::vector<std::string> hot = {"--temperature", "3", "--seed", "5"};
  const std::string drawn = written(hot);
  CHECK(written(hot) == drawn);
  CHECK(written(hot, 2) == drawn);
  CHECK(written({"--temperature", "3", "--seed", "5", "--device", "reference"}) == drawn);
  CHECK(written({"--temperature", "3", "--seed", "6"}) != drawn);
  CHECK(written({"--temperature", "3", "--top-k", "1", "--prompt", "cd"}) == greedy.substr(0, 32) + "\n");

  const auto refused = [&](std::vector<std::string> words, int code) {
    words.insert(words.begin(), {"predict", "results/trial"});
    const Outcome outcome = trial.echelon(words);
    CHECK(outcome.code == code);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  CHECK_THAT(refused({"--generate", "3", "--prompt", "xyz"}, kExitData), Contains("--prompt: 'x' is not in the voc"));
  CHECK_THAT(refused({"--beam", "2", "--prompt", "ab"}, kExitConfig), Contains("--generate 200 continues a text"));
  CHECK_THAT(refused({"--seed", "2"}, kExitConfig), Contains("--generate"));
  CHECK_THAT(refused({}, kExitConfig), Contains("--generate N for text"));
  CHECK_THAT(refused({"nowhere", "--generate", "3"}, kExitData), Contains("nowhere"));
  trial.make_data({"import", "text", "book.txt", "--out", "other", "--tokens", "words"});
  CHECK_THAT(refused({"other", "--generate", "3"}, kExitData), Contains("was trained on (8) and 9"));
}

TEST_CASE("translations of a data set and of lines, by any number of ranks, and their BLEU", "[predict]") {
  const Trial trial(kPairs);
  trial.make_data({"synth", "--kind", "numbers", "--samples", "3000", "--hold-out", "41", "--out", "pairs"});
  REQUIRE(trial.train(0).code == kExitOk);
  const auto ran = [&](std::vector<std::string> words, int ranks = 0) {
    const Outcome outcome = trial.echelon(words, ranks);
    INFO(outcome.err);
    CHECK(outcome.code == kExitOk);
    return outcome;
  };
  const Outcome greedy = ran({"predict", "results/trial", "--beam", "1", "--out", "greedy.txt", "--batch", "16"});
  CHECK(std::count(greedy.out.begin(), greedy.out.end(), '\n') == 41);
  CHECK(read_file_whole(trial / "greedy.txt") == greedy.out);
  const double bleu = bleu_in(greedy.err);
  CHECK(bleu > 40);
  CHECK(bleu_in(ran({"eval", "results/trial"}).out) == bleu);
  const Outcome beams = ran({"predict", "results/trial", "pairs/test", "--beam", "3", "--batch", "16"}, 2);
  CHECK(beams.out == ran({"predict", "results/trial", "--beam", "3"}).out);
  CHECK(bleu_in(ran({"eval", "results/trial", "--beam", "3"}, 2).out) == bleu_in(beams.err));
  write_file_whole(trial / "lines.txt", sources_in(trial / "pairs/test/shard-0000.h5"));
  CHECK(ran({"predict", "results/trial", "--beam", "3", "--prompt-file", "lines.txt"}).out == beams.out);
  CHECK(ran({"predict", "results/trial", "--beam", "1", "--prompt", "7", "--max-length", "1"}).out == "seven\n");
  CHECK(trial.echelon({"predict", "results/trial", "--beam", "1", "--prompt", "7a"}).code == kExitData);
  CHECK_THAT(trial.echelon({"predict", "results/trial", "--generate", "5"}).err, Contains("--beam 4 translates"));
}

}  // namespace echelon::test
