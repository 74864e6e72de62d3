// SPDX-License-Identifier: Apache-2.0
// `echelon compare` on made-up attempts: false alarms, regressions found, refusals, files.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "report/compare/comparison.hpp"
#include "report/writers/comparison.hpp"
#include "tests/support/process.hpp"
#include "tests/unit/report/noisy_rates.hpp"
#include "tests/unit/report/written.hpp"

namespace echelon::test {
namespace {

void write_steps(const std::string& attempt, const std::vector<double>& rates) {
  std::string rows = R"({"type":"step","step":1,"samples":64,"samples_per_s":3})"
                     "\n";
  for (std::size_t i = 0; i < rates.size(); ++i)
    rows += fmt::format(R"({{"type":"step","step":{},"samples":64,"samples_per_s":{}}})"
                        "\n",
                        i + 2, rates[i]);
  write_file_whole(attempt + "/metrics.jsonl", rows);
}

// Writes the attempts of one side into <folder>/<side>/01 ..
void write_side(const std::string& folder, int attempts, const Noise& noise, std::uint64_t seed, Written run = {}) {
  for (int i = 0; i < attempts; ++i) {
    const std::string attempt = fmt::format("{}/{:02}", folder, i + 1);
    const std::vector<double> rates = noisy_rates(noise, seed * 100 + static_cast<std::uint64_t>(i));
    // A run makes equally many samples in each step, so its rate over the whole time is the harmonic mean.
    double seconds = 0;
    for (const double rate : rates) seconds += 1 / rate;
    run.rate = static_cast<double>(rates.size()) / seconds;
    run.seed = i + 1;
    write_attempt(attempt, run);
    write_steps(attempt, rates);
  }
}

// Edits a file as if the process had written other text.
void replace_in(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = read_file_whole(path);
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  write_file_whole(path, text.replace(at, from.size(), to));
}

Comparison compared(const TempFolder& folder, const CompareSettings& settings = {}) {
  return compare_runs(read_runs({folder / "base"}), read_runs({folder / "new"}), settings);
}

ComparedFigure figure_of(const Comparison& comparison, const std::string& name) {
  for (const ComparedFigure& figure : comparison.runs.at(0).figures)
    if (figure.name == name) return figure;
  FAIL("no figure " << name);
  return {};
}

}  // namespace

TEST_CASE("20 pairs of equal builds raise no alarm; a build that is 5 % slower is found in 9 of 10",
          "[report][compare]") {
  const Noise noise{.steps = 0.04, .memory = 0.7, .attempts = 0.005, .stalls = 0.01};
  Noise slower = noise;
  slower.level *= 0.95;
  int alarms = 0, found = 0;
  for (std::uint64_t pair = 0; pair < 20; ++pair) {
    const TempFolder folder;
    write_side(folder / "base", 4, noise, 1 + 3 * pair);
    write_side(folder / "new", 4, noise, 2 + 3 * pair);
    alarms += compared(folder).count(Change::worse);
    write_side(folder / "new", 4, slower, 3 + 3 * pair);
    const Comparison comparison = compared(folder);
    // Stalls of single steps move the rate over wall time more than all other noise moves the median step.
    found += figure_of(comparison, "samples_per_s_median_step").verdict == Change::worse;
    CHECK(figure_of(comparison, "samples_per_s_median_step").change == Approx(-0.05).margin(0.025));
  }
  CHECK(alarms == 0);
  CHECK(found >= 18);
}

TEST_CASE("a figure too noisy for its tolerance has the number of attempts that would do", "[report][compare]") {
  const TempFolder folder;
  const Noise noise{.steps = 0.01, .attempts = 0.09};
  write_side(folder / "base", 3, noise, 1);
  write_side(folder / "new", 3, noise, 2);
  const Comparison comparison = compared(folder);
  const double needed = figure_of(comparison, "samples_per_s").attempts_needed;
  CHECK(needed > 10);
  const auto json = nlohmann::json::parse(comparison_json(comparison));
  CHECK(json["runs"][0]["figures"][0]["attempts_needed"] == needed);
  CHECK_THAT(comparison_text(comparison), Catch::Contains("with this noise,"));
}

TEST_CASE("stalls of a few steps lower the rate, not that of the median step", "[report][compare]") {
  const TempFolder folder;
  write_side(folder / "base", 3, {.attempts = 0.002}, 1);
  write_side(folder / "new", 3, {.attempts = 0.002, .stalls = 0.1}, 2);
  const Comparison comparison = compared(folder);
  CHECK(figure_of(comparison, "samples_per_s_median_step").verdict == Change::none);
  CHECK(figure_of(comparison, "samples_per_s").verdict == Change::worse);
}

TEST_CASE("a change within the tolerance is no regression, however certain", "[report][compare]") {
  const TempFolder folder;
  write_side(folder / "base", 2, {.steps = 0.001}, 1);
  write_side(folder / "new", 2, {.level = 980, .steps = 0.001}, 2);
  CHECK(figure_of(compared(folder), "samples_per_s").verdict == Change::none);
  CHECK(figure_of(compared(folder), "samples_per_s").p < 1e-3);
  CompareSettings strict;
  strict.tolerance[0] = 0.01;
  CHECK(figure_of(compared(folder, strict), "samples_per_s").verdict == Change::worse);
}

TEST_CASE("counts and memory compare ranges, accuracy its attempts", "[report][compare]") {
  const TempFolder folder;
  write_side(folder / "base", 2, {}, 1, {.ranks = 2});
  write_side(folder / "new", 2, {}, 1, {.ranks = 2, .accuracy = 0.95});
  for (const char* attempt : {"01", "02"}) {
    const std::string summary = (folder / "new/") + attempt + "/summary.json";
    replace_in(summary, "\"messages_per_step\":12", "\"messages_per_step\":13");
    replace_in(summary, "[100,120.5]", "[100,125]");
  }
  Comparison comparison = compared(folder);
  CHECK(figure_of(comparison, "messages_per_step").verdict == Change::worse);
  CHECK(figure_of(comparison, "messages_per_step").change == Approx(1.0 / 12));
  CHECK(figure_of(comparison, "wire_bytes_per_step").verdict == Change::none);
  CHECK(figure_of(comparison, "peak_rss_mb").verdict == Change::none);
  CHECK(figure_of(comparison, "test_accuracy").verdict == Change::worse);
  CHECK(figure_of(comparison, "test_accuracy").change == Approx(-0.025));
  CHECK(comparison.count(Change::worse) == 2);
  // One attempt of NEW sends as many as BASE does, so the ranges overlap.
  replace_in(folder / "new/02/summary.json", "\"messages_per_step\":13", "\"messages_per_step\":12");
  replace_in(folder / "base/02/summary.json", "0.975", "0.925");
  comparison = compared(folder);
  CHECK(figure_of(comparison, "messages_per_step").verdict == Change::none);
  CHECK(figure_of(comparison, "test_accuracy").verdict == Change::none);  // 97.5 and 92.5 against 95 and 95
  CompareSettings counts;
  counts.included = {false, false, false, true, false};
  comparison = compared(folder, counts);
  for (const ComparedFigure& figure : comparison.runs[0].figures) CHECK(figure.group == FigureGroup::counts);
}

TEST_CASE("runs of different experiments are refused with the keys, unless these are allowed", "[report][compare]") {
  const TempFolder folder;
  write_side(folder / "base", 1, {}, 1, {.ranks = 2});
  write_side(folder / "new", 1, {}, 1, {.ranks = 4, .global = 128});
  CHECK_THROWS_WITH(compared(folder), Catch::Contains("batch.global") && Catch::Contains("ranks") &&
                                          Catch::Contains("--allow KEY") && !Catch::Contains("seed"));
  CompareSettings settings;
  settings.allowed = {"batch", "ranks"};
  CHECK_THROWS_WITH(compared(folder, settings), Catch::Contains("mesh") && !Catch::Contains("batch.global"));
  settings.allowed = {"batch", "ranks", "mesh"};
  CHECK(compared(folder, settings).runs.at(0).allowed.size() == 3);
  settings.allowed = {"batch.globl"};
  CHECK_THROWS_WITH(compared(folder, settings), Catch::Contains("did you mean 'batch.global'"));
}

TEST_CASE("experiments find their counterparts among several; NEW may have more", "[report][compare]") {
  const TempFolder folder;
  for (const int ranks : {1, 2}) write_side(folder / fmt::format("base/{}", ranks), 1, {}, 1, {.ranks = ranks});
  for (const int ranks : {4, 2, 1}) write_side(folder / fmt::format("new/{}", ranks), 1, {}, 1, {.ranks = ranks});
  const Comparison comparison = compared(folder);
  REQUIRE(comparison.runs.size() == 2);
  CHECK(comparison.count(Change::none) > 0);
  CHECK(comparison.count(Change::worse) == 0);
  CHECK_THAT(comparison.notes.back(), Catch::Contains("only NEW has") && Catch::Contains("4 ranks"));
  CHECK_THROWS_AS(compare_runs(read_runs({folder / "new"}), read_runs({folder / "base"}), {}), ConfigError);
}

TEST_CASE("too few steps and unfinished attempts are told, not judged", "[report][compare]") {
  const TempFolder folder;
  write_side(folder / "base", 1, {}, 1);
  write_side(folder / "new", 1, {.count = 15}, 1);
  CHECK_THROWS_WITH(compared(folder), Catch::Contains("15 rows") && Catch::Contains("--only"));
  write_side(folder / "new", 1, {}, 1, {.state = "failed"});
  CHECK_THROWS_WITH(compared(folder), Catch::Contains("NEW: none of 1 attempt finished"));
}

TEST_CASE("a regression is in the text, in JSON and a failure in JUnit", "[report][compare]") {
  const TempFolder folder;
  write_side(folder / "base", 2, {.steps = 0.01}, 1);
  write_side(folder / "new", 2, {.level = 800, .steps = 0.01}, 2);
  replace_in(folder / "new/01/summary.json", "\"test_accuracy\":0.975", "\"test_accuracy\":null");
  replace_in(folder / "new/02/summary.json", "\"test_accuracy\":0.975", "\"test_accuracy\":null");
  const Comparison comparison = compared(folder);
  const std::string text = comparison_text(comparison), junit = comparison_junit(comparison);
  CHECK_THAT(text, Catch::Contains("worse: ") && Catch::Contains("samples_per_s is 20.") &&
                       Catch::Contains("% lower") && Catch::Contains("REGRESSION: 2 figures worse") &&
                       Catch::Contains("NEW has none"));
  const auto json = nlohmann::json::parse(comparison_json(comparison));
  CHECK(json["worse"] == 2);
  CHECK(json["runs"][0]["figures"][0]["verdict"] == "worse");
  CHECK(json["runs"][0]["figures"][0]["new"].get<double>() == Approx(800).epsilon(0.01));
  CHECK_THAT(junit, Catch::Contains("failures=\"2\"") && Catch::Contains("<failure type=\"regression\" message=\"") &&
                        Catch::Contains("name=\"samples_per_s\"") && Catch::Contains("skipped=\"1\""));
}

}  // namespace echelon::test
