// The verdict on a claim from the cells of its study.
//
// A test is confirmed where the 95 % t interval of its effect (claim.hpp) over seeds lies in the claimed region,
// refuted where it lies outside, else not decided. Exact instruments have no noise: the effect of each seed decides. A
// test over several settings, pairs or neighbours is confirmed where all of them are (intersection-union: no
// correction is needed) and refuted where one is. A claim is confirmed or refuted where all its tests are, in part
// where some are confirmed and some refuted.
#pragma once

#include <string>
#include <vector>

#include "report/claims/claim.hpp"

namespace echelon::inline report {

enum class ClaimWord : std::uint8_t { confirmed, in_part, refuted, not_decided };
std::string_view text_of(ClaimWord word);

// The effect of one comparison. Low = high = value for an exact instrument.
struct ClaimEffect {
  std::string what;  // which cells, in words
  double value = 0, low = 0, high = 0;
  double region_low = 0, region_high = 0;
  double measured = 0, expected = 0;  // means over seeds; expected is unknown where the claim names no number
  double p = 1;                       // of the claim's negation; 0 or 1 for exact instruments
  double would_find = 0;              // effect found with probability 0.9 by as many seeds; 0: exact
  int seeds = 0;
  ClaimWord word = ClaimWord::not_decided;
};

struct TestVerdict {
  ClaimWord word = ClaimWord::not_decided;
  std::vector<ClaimEffect> effects;  // one for each setting, pair or neighbours
  std::string problem;               // why there is no effect: no cell matches, a figure is unknown
  // The effect that decides: the one furthest towards, or beyond, the border of its region. There is one.
  const ClaimEffect& decisive() const;
};

struct ClaimVerdict {
  ClaimWord word = ClaimWord::not_decided;
  std::vector<TestVerdict> tests;  // as Claim::tests
};

ClaimVerdict judge_claim(const Claim& claim, const std::vector<ClaimCell>& cells);

// P-values adjusted by Benjamini and Hochberg (J. R. Stat. Soc. B 57, 1995), in the order given.
std::vector<double> adjusted_p(const std::vector<double>& p);

}  // namespace echelon::inline report
