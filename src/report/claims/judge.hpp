// SPDX-License-Identifier: Apache-2.0
// The verdict on a claim from the cells of its study.
//
// A test is confirmed if the 95 % t interval of its effect (claim.hpp) over seeds lies in the claimed region, refuted
// if it lies outside, and otherwise not decided. Exact instruments have no noise: the effect of each seed decides. A
// test over several settings, pairs or neighbours is confirmed if all of them are (intersection-union, which needs no
// correction) and refuted if one is. A claim is confirmed or refuted if all its tests are, and confirmed in part if
// some are confirmed and some refuted.
#pragma once

#include <string>
#include <vector>

#include "report/claims/claim.hpp"

namespace echelon::inline report {

enum class ClaimWord : std::uint8_t { confirmed, in_part, refuted, not_decided };
std::string_view text_of(ClaimWord word);

// The effect of one comparison. For an exact instrument low = high = value.
struct ClaimEffect {
  std::string what;  // the cells that are compared, in words
  double value = 0, low = 0, high = 0;
  double region_low = 0, region_high = 0;
  double measured = 0, expected = 0;  // means over seeds; expected is unknown where the claim names no number
  double p = 1;                       // p of the claim's negation; 0 or 1 for exact instruments
  double would_find = 0;              // effect that as many seeds would find with probability 0.9; 0: exact
  int seeds = 0;
  ClaimWord word = ClaimWord::not_decided;
};

struct TestVerdict {
  ClaimWord word = ClaimWord::not_decided;
  std::vector<ClaimEffect> effects;  // one per setting, pair or neighbours
  std::string problem;               // why there is no effect: no cell matches, a figure is unknown
  // Returns the effect that decides: the one nearest to, or furthest beyond, the border of its region. Requires one.
  const ClaimEffect& decisive() const;
};

struct ClaimVerdict {
  ClaimWord word = ClaimWord::not_decided;
  std::vector<TestVerdict> tests;  // in the order of Claim::tests
};

ClaimVerdict judge_claim(const Claim& claim, const std::vector<ClaimCell>& cells);

// Returns p-values adjusted after Benjamini and Hochberg (J. R. Stat. Soc. B 57, 1995), in the order given.
std::vector<double> adjusted_p(const std::vector<double>& p);

}  // namespace echelon::inline report
