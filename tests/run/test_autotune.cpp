// exchange.algorithm = "auto" as a user runs it: chosen, told, kept, and kept to.
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

// The choice that autotune.txt ends with.
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
