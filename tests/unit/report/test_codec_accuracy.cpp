// What a codec costs in accuracy, as reports warn of it.
#include <catch2/catch.hpp>

#include "report/scaling.hpp"
#include "report/writers/writers.hpp"
#include "tests/support/process.hpp"
#include "tests/unit/report/written.hpp"

namespace echelon {

using test::markdown_of;
using test::TempFolder;
using test::write_attempt;

TEST_CASE("a codec that costs more than a point of accuracy is warned of", "[report]") {
  ExchangeConfig sparse, fewer, halves;
  sparse.codec = fewer.codec = "threshold", halves.codec = "bf16";
  fewer.density = 0.001, fewer.codec_warmup_steps = 188;
  TempFolder folder;
  write_attempt(folder / "none/01", {.ranks = 2, .accuracy = 0.9, .seed = 1});
  write_attempt(folder / "none/02", {.ranks = 2, .accuracy = 0.91, .seed = 2});
  write_attempt(folder / "none/03", {.ranks = 2, .accuracy = 0.95, .seed = 3});
  write_attempt(folder / "halves/01", {.ranks = 2, .accuracy = 0.9, .exchange = halves});  // a point below, not more
  write_attempt(folder / "sparse/01", {.ranks = 2, .accuracy = 0.85, .seed = 1, .exchange = sparse});
  write_attempt(folder / "sparse/02", {.ranks = 2, .accuracy = 0.86, .seed = 2, .exchange = sparse});
  write_attempt(folder / "fewer/01", {.ranks = 4, .accuracy = 0.8988, .exchange = fewer});
  write_attempt(folder / "batch/01", {.ranks = 2, .global = 128, .accuracy = 0.5, .exchange = sparse});
  write_attempt(folder / "paced/01", {.ranks = 2, .paced = true, .accuracy = 0.1, .exchange = sparse});
  const ScalingReport report = make_scaling(read_runs({folder.path()}));
  REQUIRE(report.warnings.size() == 3);
  INFO(report.warnings[2]);
  CHECK(report.warnings[2].find("are not compared: they differ in device.kind (") != std::string::npos);
  CHECK(report.warnings[0] ==
        "codec threshold (density 0.001, after 188 steps) on 4 ranks costs 1.12 points of test accuracy: 89.88 % "
        "(1 run) beside 91.00 % (3 runs) without a codec after 345 steps");
  CHECK(report.warnings[1] ==
        "codec threshold (density 0.01) on 2 ranks costs 5.50 points of test accuracy: 85.50 % (2 runs) beside "
        "91.00 % (3 runs) without a codec after 345 steps");
  CHECK(write_text(report).find("warning: codec threshold (density 0.01) on 2 ranks") != std::string::npos);
  CHECK(markdown_of(report).find("> Warning: codec threshold (density 0.01) on 2 ranks") != std::string::npos);
  CHECK(write_json(report, {}).find("\"warnings\": [\n    \"codec threshold") != std::string::npos);
}

TEST_CASE("a codec is compared with runs on as many ranks where there are any", "[report]") {
  ExchangeConfig sparse;
  sparse.codec = "topk";
  TempFolder folder;
  write_attempt(folder / "a/01", {.ranks = 1, .accuracy = 0.99});
  write_attempt(folder / "a/02", {.ranks = 2, .accuracy = 0.9});
  write_attempt(folder / "b/02", {.ranks = 2, .accuracy = 0.895, .exchange = sparse});
  CHECK(make_scaling(read_runs({folder.path()})).warnings.empty());
  write_attempt(folder / "b/03", {.ranks = 3, .accuracy = 0.93, .exchange = sparse});
  const auto warnings = make_scaling(read_runs({folder.path()})).warnings;
  REQUIRE(warnings.size() == 1);  // beside both runs without a codec: 94.5 %
  CHECK(warnings[0].find("on 3 ranks costs 1.50 points") != std::string::npos);
}

}  // namespace echelon
