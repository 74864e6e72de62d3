// The sharpness of the minimum that a cell of a study has reached (study.sharpness).
#pragma once

#include <string>

namespace echelon::cli {

// Measures the newest checkpoint of the run of `attempt` on the first samples of its training data, in the box of
// `epsilon` (inference/sharpness.hpp), on one rank. NaN with a warning where it cannot be measured: a loss that is not
// finite, data that have gone.
double sharpness_of(const std::string& attempt, double epsilon);

}  // namespace echelon::cli
