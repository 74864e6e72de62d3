// SPDX-License-Identifier: Apache-2.0
// The sharpness of the minimum that a cell of a study reached (study.sharpness).
#pragma once

#include <string>

namespace echelon::cli {

// Measures the newest checkpoint of the run of `attempt` on the first samples of its training data, in the box of
// `epsilon` (inference/sharpness.hpp), on one rank. Returns NaN, with a warning, if it cannot be measured: the loss is
// not finite, or the data are gone.
double sharpness_of(const std::string& attempt, double epsilon);

}  // namespace echelon::cli
