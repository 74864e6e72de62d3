// SPDX-License-Identifier: Apache-2.0
#include "config/differences.hpp"

#include <catch2/catch.hpp>

#include "config/parse.hpp"

namespace echelon {
namespace {

Config config_of(const std::string& layers, const std::vector<std::string>& sets = {}) {
  return parse_config("[data]\ntrain = \"x\"\n[batch]\nglobal = 8\n" + layers, "made.toml", sets);
}

const std::string kDense = "[[model.layers]]\ntype = \"dense\"\nunits = 10\n";

}  // namespace

TEST_CASE("the keys in which configs differ have both values; neutral ones where asked for", "[config]") {
  const Config left = config_of(kDense),
               right = config_of(kDense, {"exchange.bucket_mb=2", "checkpoint.every_steps=7"});
  CHECK(differing_keys(left, left, true).empty());
  const auto some = differing_keys(left, right, false), all = differing_keys(left, right, true);
  REQUIRE(some.size() == 1);
  CHECK(some[0].key == "exchange.bucket_mb");
  CHECK(some[0].right == "2.0");
  REQUIRE(all.size() == 2);
  CHECK(differing_keys(right, left, false)[0].left == "2.0");
}

TEST_CASE("other layers are one difference", "[config]") {
  const Config left = config_of(kDense), right = config_of(kDense + kDense, {"batch.global=16"});
  for (const bool neutral_too : {false, true}) {
    const auto keys = differing_keys(left, right, neutral_too);
    REQUIRE(keys.size() == 2);
    CHECK(keys[1].key == "model.layers");
    CHECK(keys[1].left == "1 layers");
  }
}

}  // namespace echelon
