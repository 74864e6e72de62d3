// When a study is judged, and how strictly: it may be judged again with more repetitions, and many settings are
// compared, and still the probability of any false winner is at most kStudyError.
//
// A study is judged at 3 (times and rates alone), 5, 10 and 20 repetitions. The error is spent in equal parts over the
// looks, a spending function in the sense of Lan and DeMets (Biometrika 70, 1983) with its steps bounded by
// Bonferroni's inequality instead of the joint distribution of the looks: nothing is assumed about how looks are
// correlated, and the true error is below the stated one. Between two looks a study is judged at the level of the next
// one. Settings that are compared at once share a look's part by Holm (Scandinavian Journal of Statistics 6, 1979).
#pragma once

#include <array>
#include <vector>

namespace echelon::inline report {

inline constexpr double kStudyError = 0.05;
inline constexpr std::array<int, 4> kLooks = {3, 5, 10, 20};
inline constexpr int kLeastTimings = 3, kLeastFigures = 5;  // repetitions for a test of times; of metrics
inline constexpr int kFlipsFrom = 8;                        // repetitions from which exact sign flips are told as well

enum class Tested : unsigned char { timing, figure };

// Fewer repetitions show nothing.
int least_repetitions(Tested tested);
// The level of a test at any of the looks, where one setting is compared.
double look_level(Tested tested);
// The first look with at least so many repetitions; 20 and beyond: as many as there are.
int next_look(int repetitions);

// Holm: of each p (already over its look's part, so that kStudyError is asked of it) the level at which it is judged,
// and whether it is shown.
struct Judged {
  double level = 0;
  bool shown = false;
};
std::vector<Judged> holm(const std::vector<double>& p, double error);

}  // namespace echelon::inline report
