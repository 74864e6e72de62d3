// SPDX-License-Identifier: Apache-2.0
// exchange.algorithm = "auto" as a user runs it: the choice is made, printed, stored and kept, and the candidates that
// do not change a result leave it unchanged.
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "tests/run/trial.hpp"

using namespace echelon;
using Catch::Contains;

namespace {

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the choice with which autotune.txt ends.
std::string chosen(const std::string& attempt) {
  const std::string text = read(attempt + "/autotune.txt");
  const auto at = text.find("chosen    ");
  return at == std::string::npos ? "" : text.substr(at + 10, text.find('\n', at) - at - 10);
}

}  // namespace

TEST_CASE("an exchange that tunes itself says why, and a resumed run keeps to it", "[run]") {
  const test::Trial trial;
  const test::Outcome first =
      trial.train(3, {"exchange.algorithm=auto", "train.epochs=1", "checkpoint.every_epochs=1"});
  INFO(first.out << first.err);
  REQUIRE(first.code == 0);
  const std::string attempt = trial.attempt(), choice = chosen(attempt);
  CHECK_THAT(read(attempt + "/autotune.txt"),
             Contains("inside a host") && Contains("priced") && Contains("measured") && Contains("shared "));
  CHECK_THAT(choice, Contains("segment_kb=") && Contains("bucket_mb=") && Contains("messages_in_flight="));
  CHECK_THAT(first.out, Contains(choice) && Contains("synchronous, " + choice.substr(0, choice.find(' '))));
  CHECK(trial.summary()["algorithm"] == choice.substr(0, choice.find(' ')));
  CHECK_THAT(read(attempt + "/config.toml"), Contains("algorithm = \"auto\""));

  const test::Outcome second =
      trial.train(3, {"exchange.algorithm=auto", "train.epochs=2", "checkpoint.every_epochs=1"});
  INFO(second.out << second.err);
  REQUIRE(second.code == 0);
  CHECK_THAT(second.out, Contains("autotune  chosen earlier: " + choice));
  CHECK(chosen(trial.attempt()).empty());

  const test::Outcome fewer =
      trial.train(2, {"exchange.algorithm=auto", "train.epochs=3", "checkpoint.every_epochs=1"});
  INFO(fewer.out << fewer.err);
  REQUIRE(fewer.code == 0);
  CHECK_THAT(fewer.out, Contains("autotune  repeated"));
  CHECK(!chosen(trial.attempt()).empty());
}

TEST_CASE("the parts of a split model use one choice, and a resumed run keeps to it", "[run]") {
  const test::Trial trial;
  const test::Sets sets = {"exchange.algorithm=auto", "parallel.pipeline=2", "checkpoint.every_epochs=1",
                           "evaluate.every_epochs=0"};
  const auto train = [&](const char* epochs) {
    test::Sets more = sets;
    more.push_back(epochs);
    const test::Outcome outcome = trial.train(4, more);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  CHECK_THAT(train("train.epochs=1"), Contains("2 parts, of which the largest chose"));
  CHECK(!chosen(trial.attempt()).empty());
  CHECK_THAT(train("train.epochs=2"), Contains("autotune  chosen earlier"));
}

TEST_CASE("exchange.algorithm = auto on one replica: nothing to tune", "[run]") {
  const test::Trial trial;
  const test::Outcome alone = trial.train(0, {"exchange.algorithm=auto", "train.epochs=1"});
  INFO(alone.out << alone.err);
  REQUIRE(alone.code == 0);
  CHECK_THAT(alone.out, Contains("nothing to exchange"));
}

TEST_CASE("helpers and the number of messages in flight change no weight", "[run]") {
  const test::Trial trial;
  std::string config = read(trial / "trial.toml");
  const std::string zoo = "zoo = \"digits_cnn\"\n";
  config.erase(config.find(zoo), zoo.size());
  // One bucket holds 263 KiB of gradients; helper threads take part from 128 KiB on.
  std::ofstream(trial / "trial.toml") << config + R"(
[[model.layers]]
type = "flatten"
[[model.layers]]
type = "dense"
units = 900
[[model.layers]]
type = "relu"
[[model.layers]]
type = "dense"
units = 10
)";
  const auto weights = [&](const std::string& name, const test::Sets& sets) {
    const test::Outcome outcome =
        trial.train(2, test::with({"name=" + name, "train.epochs=1", "checkpoint.every_steps=0", "exchange.bucket_mb=1",
                                   "run.trace=steps 3..6"},
                                  sets));
    INFO(name << ": " << outcome.out << outcome.err);
    REQUIRE(outcome.code == 0);
    return test::last_values(trial, "weights/", name);
  };
  for (const std::string codec : {"none", "topk"}) {
    CAPTURE(codec);
    const test::Sets coded = {"exchange.codec=" + codec};
    const auto plain = weights(codec, coded);
    CHECK(!plain.empty());
    CHECK_THAT(read(trial.attempt(codec) + "/trace.json"), !Contains("\"helpers"));
    const std::string helped = codec + "-helped";
    CHECK(weights(helped, test::with(coded, {"exchange.helpers=2", "exchange.messages_in_flight=1"})) == plain);
    CHECK_THAT(read(trial.attempt(helped) + "/trace.json"), Contains("\"helpers"));
  }
}
