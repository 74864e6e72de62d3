// SPDX-License-Identifier: Apache-2.0
// Writes a comparison as text and as files. Pure functions.
#pragma once

#include <string>

#include "report/compare/comparison.hpp"

namespace echelon::inline report {

// Returns a table per experiment, notes, and a sentence per figure that got worse.
std::string comparison_text(const Comparison& comparison);

// {"format": "echelon-comparison", "version": 1, "worse": 1, "better": 0, "significance": .., "tolerance": {group: ..},
// "runs": [{"title", "base_attempts", "new_attempts", "allowed", "figures": [{"figure", "unit", "group", "base", "new",
// "change", "low", "high", "p", "verdict", "note"}]}], "notes": [..]}; unknown numbers are null.
std::string comparison_json(const Comparison& comparison);

// Returns JUnit XML as GitLab, GitHub Actions and Jenkins read it: one test suite per experiment, one test case per
// figure. Worse is a failure, unknown is skipped. Characters that XML 1.0 forbids are written as "?".
std::string comparison_junit(const Comparison& comparison);

// "samples_per_s is 5.1 % lower: 35,120 before, 33,400 now (99 % interval -5.9 to -4.3 %, p = 1e-09; tolerance 3 %)"
std::string change_sentence(const ComparedFigure& figure, const CompareSettings& settings);

}  // namespace echelon::inline report
