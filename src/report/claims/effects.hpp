// SPDX-License-Identifier: Apache-2.0
// The effects of a test (d in claim.hpp), seed by seed, for each setting, pair or neighbours that the test compares.
// judge.cpp decides from them.
#pragma once

#include <string>
#include <vector>

#include "report/claims/claim.hpp"

namespace echelon::inline report {

struct SeededEffect {
  std::string what;                 // the cells that are compared, in words
  std::vector<double> values = {};  // one d per seed
  double measured = 0;              // mean over seeds of the figure, or of its ratio, difference, slope or share
  double expected = 0;              // the value that the claim expects; unknown where the claim names no number
  double region_low = 0, region_high = 0;
};

struct SeededEffects {
  std::vector<SeededEffect> effects;
  std::string problem;  // why there is no effect: no cell matches, a run did not finish, a figure is unknown
};

// Returns whether the cell has all these values. Numbers are compared by value: "4" equals "4.0".
bool matches(const ClaimCell& cell, const CellSelection& selection);

SeededEffects effects_of(const Claim& claim, const ClaimTest& test, const std::vector<ClaimCell>& cells);

}  // namespace echelon::inline report
