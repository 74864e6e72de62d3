// SPDX-License-Identifier: Apache-2.0
// Compares the verdict with chance: studies are drawn with a known truth and judged at 3, 5, 10 and 20 repetitions
// until decided. The short forms draw few studies; the long one prints the table of results/verdict.md. A count of n
// studies with probability p stays within 3.3 standard errors of n p, except in one of 1,000 cases; where a short form
// may exceed the stated error, it is by that much.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "report/statistics/looks.hpp"
#include "report/statistics/power.hpp"
#include "tests/unit/report/verdict_studies.hpp"

namespace echelon {
namespace {

using test::Coverage;
using test::DrawnStudies;
using test::Verdicts;

double beyond(double p, int studies) { return 3.3 * std::sqrt(p * (1 - p) / studies); }

// True gains are exactly the least gain, or losses exactly the margin: any yes is false.
struct Null {
  const char* name;
  DrawnStudies drawn;
};
std::vector<Null> nulls() {
  return {{"1 setting, gain 1.10x, the least gain", {.gain = 1.1}},
          {"1 equal setting, least gain 0", {.least_gain = 0}},
          {"27 settings, gain 1.10x, any false winner", {.settings = 27, .gain = 1.1}},
          {"27 equal settings, least gain 0, any false winner", {.settings = 27, .least_gain = 0}},
          {"27 equal settings, nothing in common in a round", {.settings = 27, .shared = 0, .least_gain = 0}},
          {"1 setting, 2x as fast, worse by the margin", {.gain = 2, .metric = true, .loss = 0.009}},
          {"27 settings, 2x as fast, worse by the margin", {.settings = 27, .gain = 2, .metric = true, .loss = 0.009}},
          {"1 setting, 2x as fast, worse by one worker's own seed spread",
           {.gain = 2, .metric = true, .loss = 0.02, .metric_noise = 0.02}},
          {"the same, seeds have 0.8 of the variance in common",
           {.gain = 2, .shared = 0.8, .metric = true, .loss = 0.02, .metric_noise = 0.02}}};
}

// Distance of the mean from the threshold, in standard deviations of a pair; and the number of settings.
struct Sought {
  double effect;
  int settings;
};
constexpr Sought kSought[] = {{3, 1}, {2, 1}, {1, 1}, {2, 9}, {1, 9}, {2, 27}, {1, 27}};

DrawnStudies drawn_of(const Sought& sought) {
  DrawnStudies drawn{.settings = 1};
  drawn.gain = (1 + drawn.least_gain) * std::exp(sought.effect * test::paired_noise(drawn));
  return drawn;
}

// Power as found and as predicted, at the repetitions that 9 of 10 need; one look at the level for `settings`.
struct Power {
  int pairs;
  double foretold, found;
};
Power power_of(const Sought& sought, int studies) {
  const double level = look_level(Tested::timing) / sought.settings;
  const int pairs = pairs_to_find(sought.effect, 1, level, kLeastTimings);
  int hits = 0;
  for (int study = 0; study < studies; ++study)
    hits += test::least_p(drawn_of(sought), pairs, 11, study) <= level ? 1 : 0;
  return {pairs, echelon::power_of(sought.effect, 1, pairs, level), static_cast<double>(hits) / studies};
}

void check_errors(int studies, bool print) {
  if (print)
    fmt::print("| studies drawn: any yes is false | studies | yes | no | repetitions |\n|---|--:|--:|--:|--:|\n");
  for (const Null& null : nulls()) {
    const Verdicts found = test::judge_drawn(null.drawn, studies, 7);
    INFO(null.name << ": " << found.yes << " of " << studies);
    CHECK(found.share(found.yes) <= kStudyError + beyond(kStudyError, studies));
    CHECK(found.share(found.no) <= kStudyError + beyond(kStudyError, studies));
    if (print)
      fmt::print("| {} | {} | {:.2f} % | {:.2f} % | {:.1f} |\n", null.name, studies, 100 * found.share(found.yes),
                 100 * found.share(found.no), found.repetitions);
  }
}

void check_power(int studies, bool print) {
  if (print)
    fmt::print("\n| effect, standard deviations | settings | pairs | foretold | found |\n|--:|--:|--:|--:|--:|\n");
  for (const Sought& sought : kSought) {
    const Power power = power_of(sought, studies);
    INFO(sought.effect << " of " << sought.settings);
    CHECK(power.foretold >= kPower);
    CHECK(std::fabs(power.found - power.foretold) <= (print ? 0.03 : 0.03 + beyond(kPower, studies)));
    if (print)
      fmt::print("| {} | {} | {} | {:.1f} % | {:.1f} % |\n", sought.effect, sought.settings, power.pairs,
                 100 * power.foretold, 100 * power.found);
  }
}

void check_coverage(int studies, bool print) {
  if (print) fmt::print("\n| repetitions | intervals of the gain | of the accuracy |\n|--:|--:|--:|\n");
  for (const int repetitions : kLooks) {
    const DrawnStudies drawn{.gain = 1.7, .metric = true, .loss = 0.003, .most = repetitions};
    const Coverage covered = test::cover_drawn(drawn, studies, 5);
    const double wide = print ? 0 : beyond(0.95, studies);
    for (const int count : {covered.gain, covered.metric}) {
      CHECK(covered.share(count) >= 0.93 - wide);
      CHECK(covered.share(count) <= 0.97 + wide);
    }
    if (print)
      fmt::print("| {} | {:.2f} % | {:.2f} % |\n", repetitions, 100 * covered.share(covered.gain),
                 100 * covered.share(covered.metric));
  }
}

// Prints verdicts where there is something to find, and where the assumptions do not quite hold.
void print_others(int studies) {
  const std::vector<Null> others = {
      {"1 equal setting, least gain 10 %", {}},
      {"27 equal settings, least gain 10 %", {.settings = 27}},
      {"1 setting, gain 1.3x", {.gain = 1.3}},
      {"27 settings, gain 1.3x", {.settings = 27, .gain = 1.3}},
      {"27 settings, gain 1.3x, noise 20 %", {.settings = 27, .gain = 1.3, .noise = 0.2}},
      {"1 setting, 2x, equal accuracy", {.gain = 2, .metric = true}},
  };
  fmt::print(
      "\n| studies drawn | yes | no | not decided | repetitions | intervals of yes |\n|---|--:|--:|--:|--:|--:|\n");
  for (const Null& other : others) {
    const Verdicts found = test::judge_drawn(other.drawn, studies, 9);
    fmt::print("| {} | {:.2f} % | {:.2f} % | {:.2f} % | {:.1f} | {} |\n", other.name, 100 * found.share(found.yes),
               100 * found.share(found.no), 100 * found.share(found.undecided), found.repetitions,
               found.yes > studies / 10 ? fmt::format("{:.1f} %", 100.0 * found.covered / found.yes) : "");
  }
}

}  // namespace

TEST_CASE("a verdict errs no more often than it says", "[report][verdict]") { check_errors(400, false); }
TEST_CASE("a verdict finds what it foretells that it finds", "[report][verdict]") { check_power(1000, false); }
TEST_CASE("intervals hold the truth as often as they say", "[report][verdict]") { check_coverage(1000, false); }

TEST_CASE("a verdict's error, power and coverage, 10,000 studies each", "[.][soak][verdict]") {
  check_errors(10'000, true);
  check_power(10'000, true);
  check_coverage(10'000, true);
  print_others(10'000);
}

}  // namespace echelon
