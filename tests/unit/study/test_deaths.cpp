// SPDX-License-Identifier: Apache-2.0
// Which cells count the death of a launch, judged by what they left behind.
#include <catch2/catch.hpp>

#include "study/deaths.hpp"

namespace echelon {
namespace {

using Told = CellDeath::Told;
using Blames = std::vector<Blame>;

TEST_CASE("a death counts against the cell that ran alone, unless it was stopped or has got on", "[study]") {
  CHECK(judge_deaths({{.launch = "a"}}) == Blames{Blame::counted});
  CHECK(judge_deaths({{.launch = "a", .told = Told::error}}) == Blames{Blame::counted});
  CHECK(judge_deaths({{.launch = "a", .progressed = true}}) == Blames{Blame::cleared});
  CHECK(judge_deaths({{.launch = "a", .told = Told::stopped}}) == Blames{Blame::spared});
  CHECK(judge_deaths({{.launch = "a", .told = Told::stopped, .progressed = true}}) == Blames{Blame::cleared});
  CHECK(judge_deaths({{.launch = "a", .told = Told::error, .progressed = true}}) == Blames{Blame::counted});
}

TEST_CASE("of cells side by side the first that told of an error counts the death, else all do", "[study]") {
  CHECK(judge_deaths({{.launch = "a"},
                      {.launch = "a", .told = Told::error, .told_s = 7},
                      {.launch = "a", .told = Told::error, .told_s = 6},
                      {.launch = "a", .told = Told::stopped, .told_s = 5},
                      {.launch = "a", .progressed = true}}) ==
        Blames{Blame::spared, Blame::spared, Blame::counted, Blame::spared, Blame::cleared});
  CHECK(judge_deaths({{.launch = "a"}, {.launch = "a"}}) == Blames{Blame::counted, Blame::counted});
}

TEST_CASE("a launch's death is no other launch's", "[study]") {
  CHECK(judge_deaths({{.launch = "a", .told = Told::error, .told_s = 1}, {.launch = "b"}}) ==
        Blames{Blame::counted, Blame::counted});
}

}  // namespace
}  // namespace echelon
