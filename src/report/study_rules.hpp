// SPDX-License-Identifier: Apache-2.0
// The rules that a study's file sets for its verdict.
#pragma once

namespace echelon::inline report {

// [study] margin and least_gain.
struct StudyRules {
  double margin = 0.01;      // how much worse the metric may be and still count as equal, relative
  double least_gain = 0.10;  // smaller gains in time, rate or cost count as none
};

}  // namespace echelon::inline report
