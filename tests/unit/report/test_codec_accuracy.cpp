// SPDX-License-Identifier: Apache-2.0
// The accuracy that a codec costs, as reports warn of it.
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
  ExchangeConfig sparse, fewer, halves, topk;
  sparse.codec = fewer.codec = "threshold", halves.codec = "bf16", topk.codec = "topk";
  fewer.density = 0.001, fewer.codec_warmup_steps = 188;
  TempFolder folder;
  const auto write = [&](const std::string& name, const std::vector<double>& accuracies, const ExchangeConfig& exchange,
                         int ranks = 2) {
    for (std::size_t i = 0; i < accuracies.size(); ++i)
      write_attempt(
          folder / (name + "/0" + std::to_string(i + 1)),
          {.ranks = ranks, .accuracy = accuracies[i], .seed = static_cast<std::int64_t>(i) + 1, .exchange = exchange});
  };
  write("none", {0.9, 0.91, 0.95}, {});
  write("halves", {0.895, 0.905, 0.945}, halves);  // half a point below
  write("sparse", {0.845, 0.855, 0.89}, sparse);   // 5.5, 5.5 and 6 points below
  write("topk", {0.95, 0.91, 0.84}, topk);         // 2 points below in the mean, above with one seed
  write("fewer", {0.8888}, fewer, 4);              // compared with the same seed on 2 ranks: one pair
  write_attempt(folder / "batch/01", {.ranks = 2, .global = 128, .accuracy = 0.5, .exchange = sparse});
  write_attempt(folder / "paced/01", {.ranks = 2, .paced = true, .accuracy = 0.1, .exchange = sparse});
  const ScalingReport report = make_scaling(read_runs({folder.path()}));
  REQUIRE(report.warnings.size() == 3);
  INFO(report.warnings[2]);
  CHECK(report.warnings[2].find("are not compared: they differ in device.kind (") != std::string::npos);
  CHECK(
      report.warnings[0] ==
      "codec threshold (density 0.001, after 188 steps) on 4 ranks has 3.12 points less test accuracy (from 1 pair of "
      "seeds, too few to be significant): 88.88 % (1 seed) versus 92.00 % (3 seeds) without a codec after 345 steps");
  // The bound is t(2; 0.975) = 4.303 times 0.289 / sqrt(3) about the mean of 5.667.
  CHECK(report.warnings[1] ==
        "codec threshold (density 0.01) on 2 ranks costs 5.67 points of test accuracy (95 % interval 4.95 to 6.38): "
        "86.33 % (3 seeds) versus 92.00 % (3 seeds) without a codec after 345 steps");
  CHECK(write_text(report).find("warning: codec threshold (density 0.01) on 2 ranks") != std::string::npos);
  CHECK(markdown_of(report).find("> Warning: codec threshold (density 0.01) on 2 ranks") != std::string::npos);
  CHECK(write_json(report, {}).find("\"warnings\": [\n    \"codec threshold") != std::string::npos);
}

TEST_CASE("a codec is compared with runs on as many ranks where there are any", "[report]") {
  ExchangeConfig sparse;
  sparse.codec = "topk";
  TempFolder folder;
  write_attempt(folder / "a/01", {.ranks = 1, .accuracy = 0.99, .seed = 1});
  write_attempt(folder / "a/02", {.ranks = 2, .accuracy = 0.9, .seed = 2});
  write_attempt(folder / "b/02", {.ranks = 2, .accuracy = 0.895, .seed = 2, .exchange = sparse});
  CHECK(make_scaling(read_runs({folder.path()})).warnings.empty());
  write_attempt(folder / "b/03", {.ranks = 3, .accuracy = 0.93, .seed = 2, .exchange = sparse});
  const auto warnings = make_scaling(read_runs({folder.path()})).warnings;
  REQUIRE(warnings.size() == 1);  // compared with both runs without a codec: 94.5 %
  CHECK(warnings[0].find("on 3 ranks has 1.50 points less") != std::string::npos);
}

}  // namespace echelon
