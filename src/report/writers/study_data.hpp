// The evidence of a study for other programs: the numbers of the page, unrounded. results/STUDY_DATA.md has the keys
// with their units. Pure functions.
#pragma once

#include <string>

#include "report/evidence.hpp"
#include "report/verdict.hpp"
#include "report/writers/writers.hpp"

namespace echelon::inline report {

inline constexpr int kStudyVersion = 2;

// Everything that the verdict follows from: goal, cost, rules, settings with every repetition, its curve and the wire;
// and the verdict with its tests. Unknown numbers are null. read_study (report/read_study.hpp) is its inverse.
std::string study_json(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source);
// One row a setting, one column a figure; without curves. Unknown numbers are empty.
std::string study_csv(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source);

}  // namespace echelon::inline report
