// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/quantities.hpp"

using namespace echelon;

TEST_CASE("sizes are read with their units", "[cli]") {
  CHECK(parse_bytes("4096", "--x") == 4096);
  CHECK(parse_bytes("4KiB", "--x") == 4096);
  CHECK(parse_bytes("1.5 MiB", "--x") == 3 << 19);
  CHECK(parse_bytes("2MB", "--x") == 2000000);
  for (const char* wrong : {"", "KiB", "4 parsecs", "-1", "0.3", "1e30", "nan"})
    CHECK_THROWS_WITH(parse_bytes(wrong, "--x"), Catch::StartsWith("--x \"") && Catch::Contains("4KiB"));
}

TEST_CASE("a range of sizes doubles; a list is as given", "[cli]") {
  using Sizes = std::vector<std::int64_t>;
  CHECK(parse_sizes("1KiB..5KiB", "--sizes") == Sizes{1024, 2048, 4096});
  CHECK(parse_sizes("8..8", "--sizes") == Sizes{8});
  CHECK(parse_sizes("1KiB,64,1MiB", "--sizes") == Sizes{1024, 64, 1 << 20});
  CHECK_THROWS_WITH(parse_sizes("4KiB..1KiB", "--sizes"), Catch::Contains("an increasing range"));
  CHECK_THROWS_WITH(parse_sizes("0..1KiB", "--sizes"), Catch::Contains("an increasing range"));
  CHECK_THROWS_AS(parse_sizes("1KiB,,2KiB", "--sizes"), ConfigError);
}

TEST_CASE("rates are bits or bytes a second", "[cli]") {
  CHECK(parse_rate("1gbit", "--rate") == 125e6);
  CHECK(parse_rate("25 Gbit/s", "--rate") == 3125e6);
  CHECK(parse_rate("800mbit", "--rate") == 100e6);
  CHECK(parse_rate("1gbps", "--rate") == 125e6);
  CHECK(parse_rate("120MB/s", "--rate") == 120e6);
  CHECK(parse_rate("1GiB/s", "--rate") == 1024.0 * 1024 * 1024);
  for (const char* wrong : {"1", "0gbit", "fast", "-1gbit", "1gbyte", "1e308gbit", "1e-323bit"})
    CHECK_THROWS_WITH(parse_rate(wrong, "--rate"), Catch::Contains("1gbit"));
}
