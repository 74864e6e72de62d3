// SPDX-License-Identifier: Apache-2.0
// Valid settings of which a run warns.
#include "config/unsteady.hpp"

#include <catch2/catch.hpp>

#include "config/parse.hpp"

namespace echelon {
namespace {

std::vector<std::string> of(const std::vector<std::string>& sets, int ranks = 4) {
  return unsteady(parse_config("[model]\nzoo = \"lenet\"\n[data]\ntrain = \"x\"\n", "a.toml", sets), ranks);
}

TEST_CASE("adasum is said to lengthen the steps of rules that grow with the gradient", "[config]") {
  const std::string adasum = "exchange.reduction=adasum", rate = "optimizer.learning_rate=0.08";
  REQUIRE(of({adasum, rate}).size() == 1);
  CHECK_THAT(of({adasum, rate}).front(), Catch::Contains("4 replicas") && Catch::Contains("a rate of 0.02 to 0.08"));
  CHECK(of({adasum, rate}, 1).empty());
  CHECK(of({rate}).empty());
  for (const char* rule : {"adam", "adamw", "lamb", "lars", "rmsprop"})
    CHECK(of({adasum, std::string("optimizer.rule=") + rule}).empty());
}

TEST_CASE("large momentum and the delays of asynchronous rounds are said to add up", "[config]") {
  const std::string strom = "exchange.strategy=strom", rounds = "exchange.strom.rounds=asynchronous";
  REQUIRE(of({strom, rounds, "optimizer.momentum=0.9"}).size() == 1);
  CHECK_THAT(of({strom, rounds, "optimizer.momentum=0.9"}).front(), Catch::Contains("optimizer.momentum = 0.9"));
  CHECK(of({strom, rounds, "optimizer.momentum=0.5"}).empty());
  CHECK(of({strom, rounds, "optimizer.rule=adam"}).empty());
  CHECK(of({strom, "optimizer.momentum=0.9"}).empty());
}

TEST_CASE("momentum of sums that are coded in one bit is said to cost accuracy", "[config]") {
  const std::string onebit = "exchange.codec=onebit", momentum = "optimizer.momentum=0.9";
  REQUIRE(of({onebit, momentum}).size() == 1);
  CHECK_THAT(of({onebit, momentum}).front(), Catch::Contains("optimizer.momentum_before_coding = true"));
  CHECK(of({onebit, momentum}, 1).empty());
  for (const char* other : {"optimizer.momentum=0.5", "optimizer.momentum_before_coding=true", "optimizer.rule=adam",
                            "exchange.codec=int8", "exchange.strategy=server"})
    CHECK(of({onebit, momentum, other}).empty());
}

TEST_CASE("an outer momentum with which replicas of small groups drift apart is told", "[config]") {
  const std::string noloco = "exchange.strategy=noloco", high = "exchange.noloco.outer_momentum=0.9";
  REQUIRE(of({noloco, high}).size() == 1);
  CHECK_THAT(of({noloco, high}).front(), Catch::Contains("drift apart") && Catch::Contains("outer_pull below 0.38"));
  CHECK(of({noloco, high, "exchange.noloco.outer_pull=0.37"}).empty());
  CHECK(of({noloco, high, "exchange.noloco.group=8"}, 16).empty());
  CHECK(of({noloco, high}, 2).empty());  // one group
  CHECK(of({noloco, high}, 1).empty());
  CHECK(of({noloco}).empty());
  CHECK(of({high}).empty());  // of another strategy's table
}

}  // namespace
}  // namespace echelon
