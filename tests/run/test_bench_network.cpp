// SPDX-License-Identifier: Apache-2.0
// `echelon bench network` as a user runs it.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/support/process.hpp"

using namespace echelon;
using namespace echelon::test;

TEST_CASE("bench network measures all pairs under mpirun and stores them", "[bench][network]") {
  const TempFolder folder;
  const Outcome run = run_echelon({"bench", "network", "--seconds", "0.001", "--limit", "20", "--out",
                                   folder / "network.json", "--figure", folder / "network.svg"},
                                  {.ranks = 3});
  INFO(run.err << run.out);
  REQUIRE(run.code == kExitOk);
  CHECK_THAT(run.out, Catch::Contains("3 ranks on 1 host") && Catch::Contains("bandwidth to") &&
                          Catch::Contains("latency to") && Catch::Contains("rank 2"));
  const auto file = nlohmann::json::parse(read_file_whole(folder / "network.json"));
  CHECK(file["format"] == "echelon-network");
  CHECK(file["hosts"] == nlohmann::json({0, 0, 0}));
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) {
      if (a == b) CHECK(file["bytes_per_s"][a][b].is_null());
      if (a != b) CHECK(file["bytes_per_s"][a][b].get<double>() > 1e6);
      if (a != b) CHECK(file["latency_s"][a][b].get<double>() > 0);
    }
  const std::string figure = read_file_whole(folder / "network.svg");
  CHECK_THAT(figure,
             Catch::StartsWith("<svg ") && Catch::EndsWith("</svg>\n") && Catch::Contains("rank 0 to rank 1: "));
}

TEST_CASE("bench network refuses a single rank and limits without sense, once", "[bench][network]") {
  const Outcome alone = run_echelon({"bench", "network"});
  CHECK(alone.code == kExitConfig);
  CHECK_THAT(alone.err, Catch::Contains("at least 2") && Catch::Contains("mpirun"));
  const Outcome run = run_echelon({"bench", "network", "--limit", "0.1"}, {.ranks = 2});
  CHECK(run.code == kExitConfig);
  CHECK(run.err.find("echelon: error:") == run.err.rfind("echelon: error:"));
}
