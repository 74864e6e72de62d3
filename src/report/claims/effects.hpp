// The effects of a test, seed by seed: what claim.hpp calls d, for each setting, pair or neighbours that the test
// compares. judge.cpp decides from them.
#pragma once

#include <string>
#include <vector>

#include "report/claims/claim.hpp"

namespace echelon::inline report {

struct SeededEffect {
  std::string what;                 // which cells, in words
  std::vector<double> values = {};  // d, by seed
  double measured = 0;              // mean over seeds: the figure, or a ratio, difference, slope or share of it
  double expected = 0;              // of the same; unknown where the claim names no number
  double region_low = 0, region_high = 0;
};

struct SeededEffects {
  std::vector<SeededEffect> effects;
  std::string problem;  // no cell matches, a run did not finish, a figure is unknown; then there is no effect
};

// Whether the cell has all these values; numbers are equal by value, "4" and "4.0".
bool matches(const ClaimCell& cell, const CellSelection& selection);

SeededEffects effects_of(const Claim& claim, const ClaimTest& test, const std::vector<ClaimCell>& cells);

}  // namespace echelon::inline report
