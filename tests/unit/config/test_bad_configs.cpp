// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "config/batch_plan.hpp"
#include "config/check_combinations.hpp"
#include "config/parse.hpp"
#include "tests/support/bad_configs.hpp"
#include "tests/support/refusal.hpp"

namespace echelon {
namespace {

// Returns the refusal's text, or "" where the config was accepted.
std::string refusal(const test::BadConfig& bad) {
  return test::refusal<ConfigError>([&] {
    const Config config = parse_config(bad.text, "bad.toml", bad.sets, bad.environment);
    check_combinations(config);
    derive_batch(config, bad.replicas, 1'000'000);
  });
}

void check_refused(const test::BadConfig& bad) {
  INFO(bad.what);
  const std::string text = refusal(bad);
  CHECK(!text.empty());
  for (std::string fragment : bad.fragments) {
    const bool place = fragment[0] == '@';
    if (place) fragment = "bad.toml:" + fragment.substr(1);
    INFO("wanted: " << fragment << "\n   got: " << text);
    CHECK((place ? text.find(fragment) == 0 : text.find(fragment) != std::string::npos));
  }
}

}  // namespace

TEST_CASE("every bad config is refused with its place, the reason and the nearest valid thing", "[config]") {
  REQUIRE(test::bad_configs().size() >= 40);
  for (const test::BadConfig& bad : test::bad_configs()) check_refused(bad);
  for (const test::BadConfig& bad : test::bad_device_configs()) check_refused(bad);
  for (const test::BadConfig& bad : test::bad_exchange_configs()) check_refused(bad);
  for (const test::BadConfig& bad : test::bad_recipe_configs()) check_refused(bad);
}

TEST_CASE("whatever lets bits depend on the number of replicas is refused beside train.reproducible", "[config]") {
  for (const test::BadConfig& bad : test::bad_reproducible_configs()) check_refused(bad);
  const Config config = parse_config(test::good_reproducible_config(), "good.toml");
  CHECK_NOTHROW(check_combinations(config));
  for (const int k : {1, 2, 4, 8}) {
    CHECK(derive_batch(config, k, 1000).accumulation == 8 / k);
    CHECK(derive_batch(config, k, 1000).micro == std::vector<std::int64_t>(static_cast<std::size_t>(k), 8));
  }
}

TEST_CASE("the good config that the bad ones are made of is accepted", "[config]") {
  const Config config = parse_config(test::good_config(), "good.toml");
  CHECK_NOTHROW(check_combinations(config));
  CHECK(config.batch.global == 64);
  CHECK(config.optimiser.learning_rate == 0.05);
  CHECK(config.origins.at("batch.global") == "good.toml:12:1");
}

TEST_CASE("a batch larger than the data is refused where the ragged end is dropped", "[config]") {
  Config config = parse_config(test::good_config(), "good.toml", {"data.ragged=drop"});
  CHECK_THROWS_WITH(derive_batch(config, 2, 63), Catch::Contains("at most 63"));
  CHECK(derive_batch(config, 2, 64).global == 64);
}

TEST_CASE("more replicas than samples are refused with both numbers", "[config]") {
  const Config config = parse_config(test::good_config(), "good.toml");
  CHECK_THROWS_WITH(derive_batch(config, 8, 5),
                    Catch::Contains("good.toml:8:1") && Catch::Contains("8 replicas") && Catch::Contains("5 samples"));
}

}  // namespace echelon
