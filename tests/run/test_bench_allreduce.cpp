// SPDX-License-Identifier: Apache-2.0
// `echelon bench allreduce` as a user runs it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "comm/collective/algorithms.hpp"
#include "tests/support/process.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

Outcome bench(int ranks, std::vector<std::string> more) {
  std::vector<std::string> args = {"bench", "allreduce", "--iterations", "5", "--warmup", "1"};
  args.insert(args.end(), more.begin(), more.end());
  return run_echelon(args, {.ranks = ranks});
}

std::vector<nlohmann::json> lines_of(const std::string& text) {
  std::vector<nlohmann::json> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

}  // namespace

TEST_CASE("bench allreduce times every algorithm at every size, beside the library's blocking call", "[bench]") {
  const Outcome run = bench(3, {"--sizes", "4..4KiB", "--json", "--rate", "1gbit"});
  INFO(run.err << run.out);
  REQUIRE(run.code == 0);
  const std::vector<nlohmann::json> rows = lines_of(run.out);
  std::set<std::pair<std::string, std::int64_t>> seen;
  for (const nlohmann::json& row : rows) {
    seen.emplace(row["algorithm"], row["bytes"]);
    const double bytes = row["bytes"], p50_s = row["p50_s"];
    CHECK(p50_s > 0);
    CHECK(row["p99_s"] >= p50_s);
    CHECK(row["algorithm_bytes_per_s"].get<double>() == Approx(bytes / p50_s).epsilon(1e-4));
    CHECK(row["bus_bytes_per_s"].get<double>() == Approx(4.0 / 3 * bytes / p50_s).epsilon(1e-4));
    CHECK(row["bound_s"].get<double>() == Approx(4.0 / 3 * bytes / 125e6).epsilon(1e-6));
    CHECK(row["ranks"] == 3);
  }
  CHECK(seen.size() == 11 * (allreduce_names().size() + 1));
  CHECK(rows.size() == seen.size());
  for (const std::string& name : allreduce_names()) CHECK(seen.count({name, 4096}) == 1);
  CHECK(seen.count({"library (blocking)", 4}) == 1);
}

TEST_CASE("bench allreduce prints a table in f64 with chosen algorithms", "[bench]") {
  const Outcome run = bench(2, {"--sizes", "8,64KiB", "--algorithms", "ring,hierarchical", "--inner", "tree", "--outer",
                                "butterfly", "--dtype", "f64", "--segment-kb", "16"});
  INFO(run.err << run.out);
  REQUIRE(run.code == 0);
  for (const char* part : {"2 ranks on 1 host", "f64", "p50 us", "p99 us", "alg GB/s", "bus GB/s",
                           "library (blocking) us", "8 B", "64.00 KiB", "ring", "hierarchical"})
    CHECK_THAT(run.out, Catch::Contains(part));
  CHECK_THAT(run.out, !Catch::Contains("bound") && !Catch::Contains("naive"));
}

TEST_CASE("bench allreduce refuses what it cannot run, once", "[bench]") {
  const auto refused = [](const std::vector<std::string>& words, const char* why) {
    const Outcome run = bench(2, words);
    INFO(run.err);
    CHECK(run.code == 2);
    CHECK_THAT(run.err, Catch::Contains(why));
    CHECK(run.err.find("echelon: error:") == run.err.rfind("echelon: error:"));
  };
  refused({"--algorithms", "rign"}, "did you mean 'ring'");
  refused({"--sizes", "6"}, "not a multiple of one f32");
  refused({"--rate", "fast"}, "1gbit");
  refused({"--servers", "3"}, "there are 2 ranks");
  refused({"--algorithms", "hierarchical", "--outer", "mpi"}, "between hosts");
}
