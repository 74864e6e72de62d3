// SPDX-License-Identifier: Apache-2.0
// The times at which a study is judged, and the levels. A study may be judged again after more repetitions, and many
// settings are compared; the probability of any false winner is still at most kStudyError.
//
// A study is judged at 3 (times and rates only), 5, 10 and 20 repetitions, called looks. The error is spent in equal
// parts over the looks: a spending function in the sense of Lan and DeMets (Biometrika 70, 1983) whose steps are
// bounded by Bonferroni's inequality instead of the joint distribution of the looks. No assumption is made about how
// looks are correlated, and the true error is below the stated one. Between two looks a study is judged at the level of
// the next look. Settings that are compared at the same look share its part by Holm's method (Scandinavian Journal of
// Statistics 6, 1979).
#pragma once

#include <array>
#include <vector>

namespace echelon::inline report {

inline constexpr double kStudyError = 0.05;
inline constexpr std::array<int, 4> kLooks = {3, 5, 10, 20};
inline constexpr int kLeastTimings = 3, kLeastFigures = 5;  // repetitions for a test of times; of metrics
inline constexpr int kFlipsFrom = 8;                        // repetitions from which exact sign flips are reported too

enum class Tested : unsigned char { timing, figure };

// The fewest repetitions with which a test can show anything.
int least_repetitions(Tested tested);
// Returns the level of a test at any look if one setting is compared.
double look_level(Tested tested);

// Holm's method. For each p it returns the level at which that p is judged and whether the result is shown. Each p must
// already be scaled by its look's part, so that it is compared with kStudyError.
struct Judged {
  double level = 0;
  bool shown = false;
};
std::vector<Judged> holm(const std::vector<double>& p, double error);

}  // namespace echelon::inline report
