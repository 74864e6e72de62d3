// SPDX-License-Identifier: Apache-2.0
// The answer of a study comes first wherever it is told, and pages show names as text.
#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon {
namespace {

using Catch::Contains;

constexpr const char* kStudy = R"(
[study]
ranks = [1, 2]
[[study.variants]]
name = "<script>alert(1)</script> | *bold*, with a name that is longer than any column of a table would like"
set = ["exchange.algorithm=ring"]
[[study.variants]]
name = "asynchronous"
set = ["exchange.strategy=asynchronous"]
)";

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::size_t widest(const std::string& text) {
  std::size_t most = 0;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) most = std::max(most, line.size());
  return most;
}

}  // namespace

TEST_CASE("scale and report begin with the answer of a study, and no name runs on its pages", "[run][study]") {
  const test::Trial trial;
  write_file_whole(trial / "trial.toml", read_file_whole(trial / "trial.toml") + kStudy);
  const test::Outcome study =
      trial.echelon({"scale", "trial.toml", "--set", "train.epochs=1", "--set", "checkpoint.every_steps=0"}, 2);
  INFO(study.out << study.err);
  REQUIRE(study.code == kExitOk);
  const test::Outcome told = trial.echelon(
      {"scale", "trial.toml", "--report", "--set", "train.epochs=1", "--set", "checkpoint.every_steps=0"});
  const test::Outcome of_record = trial.echelon({"report", "results/trial/study.json", "--out", "again"});
  const test::Outcome of_folder = trial.echelon({"report", "results/trial", "--out", "tables", "--name", "all"});
  const std::string headline = first_line(told.out);
  CHECK_THAT(headline, Catch::StartsWith("Not decided: "));  // one repetition names no winner
  CHECK_THAT(study.out, Contains("\n\n" + headline + "\n"));
  CHECK(first_line(of_record.out) == headline);
  CHECK(first_line(of_folder.out) == headline);
  CHECK(widest(of_record.out) <= 120);
  CHECK(widest(of_folder.out.substr(0, of_folder.out.find("not counted"))) <= 120);
  const std::string page = read_file_whole(trial / "results/trial/study.html");
  CHECK_THAT(page, Contains("&lt;script&gt;alert(1)") && !Contains("<script>alert"));
  const std::string markdown = read_file_whole(trial / "results/trial/study.md");
  CHECK_THAT(markdown, Contains("&lt;script>alert(1)&lt;/script> \\| \\*bold\\*") && !Contains("<script>"));
  CHECK_THAT(read_file_whole(trial / "tables/all.md"), Contains("**Not decided: ") && !Contains("<script>"));
}

}  // namespace echelon
