// What a study's file says about how its verdict is reached.
#pragma once

namespace echelon::inline report {

// [study] margin and least_gain.
struct StudyRules {
  double margin = 0.01;      // of the metric: how much worse still counts as equal quality
  double least_gain = 0.10;  // a gain in time, rate or cost below this is none
};

}  // namespace echelon::inline report
