// SPDX-License-Identifier: Apache-2.0
// Keys that are put back to their defaults, and keys of tables inside sections.
#include <catch2/catch.hpp>

#include "config/check_combinations.hpp"
#include "config/keys.hpp"
#include "config/parse.hpp"

namespace echelon {

TEST_CASE("an empty value puts a key back to its default", "[config]") {
  const std::string file =
      "[[model.layers]]\ntype = \"relu\"\n[data]\ntrain = \"x\"\ntest = \"y\"\n[exchange]\ncodec = \"topk\"\ndensity = "
      "0.003\n";
  std::vector<std::string> notes;
  const Config config =
      parse_config(file, "a.toml", {"exchange.codec=", "exchange.density=", "data.test="}, {}, &notes);
  CHECK(config.exchange.codec == "none");
  CHECK(config.exchange.density == Config().exchange.density);
  CHECK(config.data.test.empty());
  CHECK_FALSE(config.origins.contains("exchange.density"));
  CHECK(notes.empty());
  CHECK_NOTHROW(check_combinations(config));
  CHECK(parse_config(file, "a.toml", {"model.layers=", "model.zoo=lenet"}).model.layers.empty());
  CHECK(parse_config(file, "a.toml", {}, {{"ECHELON_EXCHANGE_DENSITY", ""}}).exchange.density == 0.01);
  CHECK_THROWS_WITH(parse_config(file, "a.toml", {"exchange.dnesity="}), Catch::Contains("did you mean 'density'"));
}

TEST_CASE("keys of a table in a section are set, overridden, unset and left out like others", "[config]") {
  const std::string file =
      "[model]\nzoo = \"lenet\"\n[data]\ntrain = \"x\"\n[exchange]\nstrategy = \"server\"\n[exchange.server]\nranks = "
      "2\n";
  std::vector<std::string> notes;
  const auto with = [&](const std::vector<std::string>& sets, const std::string& variable = "") {
    notes.clear();
    std::vector<std::pair<std::string, std::string>> environment;
    if (!variable.empty()) environment.emplace_back("ECHELON_EXCHANGE_SERVER_RANKS", variable);
    return parse_config(file, "a.toml", sets, environment, &notes);
  };
  CHECK(with({}).exchange.server.ranks == 2);
  CHECK(with({}).origins.at("exchange.server.ranks") == "a.toml:8:1");
  CHECK(with({}, "3").exchange.server.ranks == 3);
  CHECK(with({"exchange.server.ranks=4"}, "3").exchange.server.ranks == 4);
  CHECK(with({"exchange.server.ranks="}).exchange.server.ranks == 0);
  CHECK(config_hash(with({"exchange.server.ranks="})) == config_hash(with({})));  // neutral value
  CHECK_THAT(echo_config(with({})), Catch::Contains("\n[exchange.server]\nranks = 2\n"));
  CHECK_THAT(keys_text(), Catch::Contains("\n[exchange.server]\n"));
  const Config other = with({"exchange.strategy=synchronous"});
  CHECK_NOTHROW(check_combinations(other));
  CHECK(other.exchange.server.ranks == 0);
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], Catch::Contains("a.toml:8:1: exchange.server.ranks = 2 is left out"));
}

}  // namespace echelon
