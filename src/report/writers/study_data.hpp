// SPDX-License-Identifier: Apache-2.0
// The evidence of a study for other programs: the numbers of the page, unrounded. results/STUDY_DATA.md lists the keys
// with their units. Pure functions.
#pragma once

#include <string>

#include "report/evidence.hpp"
#include "report/verdict.hpp"
#include "report/writers/writers.hpp"

namespace echelon::inline report {

inline constexpr int kStudyVersion = 2;

// Returns the verdict with its tests and all that it follows from: goal, cost, rules, and settings with every
// repetition, its curve and the wire. Unknown numbers are null. The inverse is read_study (report/read_study.hpp).
std::string study_json(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source);
// Returns one row per setting and one column per figure, without curves. Unknown numbers are empty.
std::string study_csv(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source);

}  // namespace echelon::inline report
