// The evidence of a study for other programs: the numbers of the page, unrounded. src/report/README.md has the keys
// with their units. Pure functions, but for wire.json of one run, which is read.
#pragma once

#include <string>

#include "report/evidence.hpp"
#include "report/verdict.hpp"
#include "report/writers/writers.hpp"

namespace echelon::inline report {

// Everything: verdict, goal, cost, settings with loss budget and curve. Unknown numbers are null. DataError where the
// wire matrix of the setting that the page shows is damaged.
std::string study_json(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source);
// One row a setting, one column a figure; without curves. Unknown numbers are empty.
std::string study_csv(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source);

}  // namespace echelon::inline report
