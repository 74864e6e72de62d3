// SPDX-License-Identifier: Apache-2.0
#include "report/claims/judge.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.hpp"
#include "report/claims/effects.hpp"
#include "report/compare/student.hpp"

namespace echelon::inline report {
namespace {

constexpr double kSignificance = 0.05, kPower = 0.9;

// The distance of an effect from the border of its region; negative outside.
double depth_of(const ClaimEffect& e) { return std::min(e.value - e.region_low, e.region_high - e.value); }

ClaimWord by_interval(double low, double high, double region_low, double region_high) {
  if (low >= region_low && high <= region_high) return ClaimWord::confirmed;
  return high < region_low || low > region_high ? ClaimWord::refuted : ClaimWord::not_decided;
}

// Returns the probability of an effect at least this deep inside the region if the true effect were at the nearer
// border: the larger p of two one-sided tests.
double p_of(double value, double error, double freedom, double region_low, double region_high) {
  const auto above = [&](double border) { return 1 - student_below((value - border) / error, freedom); };
  const auto below = [&](double border) { return student_below((value - border) / error, freedom); };
  double p = 0;
  if (std::isfinite(region_low)) p = std::max(p, above(region_low));
  if (std::isfinite(region_high)) p = std::max(p, below(region_high));
  return p;
}

ClaimEffect judged(const SeededEffect& from, bool exact) {
  const auto n = static_cast<double>(from.values.size());
  ClaimEffect e{.what = from.what,
                .region_low = from.region_low,
                .region_high = from.region_high,
                .measured = from.measured,
                .expected = from.expected,
                .seeds = static_cast<int>(from.values.size())};
  e.value = std::accumulate(from.values.begin(), from.values.end(), 0.0) / n;
  if (exact) {
    const auto [least, most] = std::minmax_element(from.values.begin(), from.values.end());
    e.low = *least;
    e.high = *most;
    const bool holds = *least >= e.region_low && *most <= e.region_high;
    e.word = holds ? ClaimWord::confirmed : ClaimWord::refuted;
    e.p = holds ? 0 : 1;
    return e;
  }
  if (from.values.size() < 2) {  // one run does not predict the next
    e.low = -std::numeric_limits<double>::infinity();
    e.high = std::numeric_limits<double>::infinity();
    e.would_find = e.high;
    return e;
  }
  double squares = 0;
  for (const double d : from.values) squares += (d - e.value) * (d - e.value);
  const double freedom = n - 1, error = std::sqrt(squares / freedom / n);
  const double t = student_quantile(1 - kSignificance / 2, freedom);
  e.low = e.value - t * error;
  e.high = e.value + t * error;
  e.word = by_interval(e.low, e.high, e.region_low, e.region_high);
  e.would_find = (t + student_quantile(kPower, freedom)) * error;
  if (error > 0)
    e.p = p_of(e.value, error, freedom, e.region_low, e.region_high);
  else
    e.p = e.word == ClaimWord::confirmed ? 0 : 1;
  return e;
}

// Returns confirmed if all effects are, refuted if one is, else not decided.
ClaimWord together(const std::vector<ClaimEffect>& effects) {
  const auto has = [&](ClaimWord word) {
    return std::any_of(effects.begin(), effects.end(), [&](const ClaimEffect& e) { return e.word == word; });
  };
  if (has(ClaimWord::refuted)) return ClaimWord::refuted;
  return has(ClaimWord::not_decided) ? ClaimWord::not_decided : ClaimWord::confirmed;
}

}  // namespace

std::string_view text_of(ClaimWord word) {
  constexpr std::string_view kWords[] = {"confirmed", "in part", "refuted", "not decided"};
  return kWords[static_cast<std::size_t>(word)];
}

const ClaimEffect& TestVerdict::decisive() const {
  ECHELON_CHECK(!effects.empty(), "a test without an effect has none that decides");
  return *std::min_element(effects.begin(), effects.end(),
                           [](const ClaimEffect& a, const ClaimEffect& b) { return depth_of(a) < depth_of(b); });
}

ClaimVerdict judge_claim(const Claim& claim, const std::vector<ClaimCell>& cells) {
  ClaimVerdict verdict;
  for (const ClaimTest& test : claim.tests) {
    TestVerdict made;
    SeededEffects found = effects_of(claim, test, cells);
    made.problem = found.problem;
    for (const SeededEffect& effect : found.effects)
      made.effects.push_back(judged(effect, claim.instrument == Instrument::exact));
    if (!made.effects.empty()) made.word = together(made.effects);
    verdict.tests.push_back(std::move(made));
  }
  const auto count = [&](ClaimWord word) {
    return std::count_if(verdict.tests.begin(), verdict.tests.end(),
                         [&](const TestVerdict& test) { return test.word == word; });
  };
  const auto all = std::ssize(verdict.tests);
  if (all > 0 && count(ClaimWord::confirmed) == all)
    verdict.word = ClaimWord::confirmed;
  else if (all > 0 && count(ClaimWord::refuted) == all)
    verdict.word = ClaimWord::refuted;
  else if (count(ClaimWord::confirmed) > 0 && count(ClaimWord::refuted) > 0)
    verdict.word = ClaimWord::in_part;
  return verdict;
}

std::vector<double> adjusted_p(const std::vector<double>& p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] > p[b]; });
  std::vector<double> adjusted(p.size());
  double least = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double rank = static_cast<double>(p.size() - i);
    least = std::min(least, p[order[i]] * static_cast<double>(p.size()) / rank);
    adjusted[order[i]] = least;
  }
  return adjusted;
}

}  // namespace echelon::inline report
