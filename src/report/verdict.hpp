// The answer of a study: should this training be distributed, over how many ranks, and how? Every word of it follows
// from the evidence by the rules below; nothing else is read.
//
// The unit is a repetition (seed). Settings of one environment are compared, in pairs of equal repetitions: times and
// rates by the logarithms of their ratios, metrics by their differences (contest.hpp).
//
//   single worker   of the settings on one rank: with a goal, that which reached it most often, then soonest; else the
//                   fastest of those whose final metric is not worse than the best one's; of rates within 1 % the
//                   plainest setting's (baseline.hpp)
//   equal quality   with a goal that some setting reached: it was reached in every repetition; else the metric is shown
//                   to be not worse than the single worker's by more than the margin: study.margin of it, or the single
//                   worker's own standard deviation over seeds, whichever is greater. A setting that diverges in a
//                   larger share of its repetitions than the single worker is not of equal quality.
//   faster          the gain is shown to be more than study.least_gain. No: it is shown to be less, for every setting
//                   of equal quality, or quality is shown to be worse. Else: not decided
//   shown           p, one-sided, is at most the level: 5 % over all settings compared (Holm) and all looks (looks.hpp)
//   tie             settings of equal quality of which the fastest is not shown to be faster by more than the least
//                   gain; the cheapest of them is recommended, then that of the fewest ranks, then the simplest
//
// A diverged repetition is worse than every finite result, and one that did not reach the goal later than every one
// that did. Fewer than three repetitions name no winner.
//
// Figures and costs are compared after equal samples: those of whole runs where all are equally long, else where the
// first setting ends, between two evaluations by linear interpolation; and at equal times: at the deadline where one is
// given, else likewise. A setting that ends before most others are evaluated does not count as the first. A run that
// has ended keeps the figure of its last evaluation as time goes on. Nothing is compared that fewer than two settings
// have.
#pragma once

#include <string>
#include <vector>

#include "report/evidence.hpp"

namespace echelon::inline report {

inline constexpr double kBusyFloor = 0.7;  // share of a single worker's step that it computes: below, mend it first
// Share of the measured peak at which it computes: below, its layers are worth a look. A rule of thumb for models whose
// time goes into large matrix products; memory traffic bounds small ones.
inline constexpr double kPeakFloor = 0.5;
inline constexpr double kPaceMissed = 0.05;  // share of a rank's steps that took more than 1.05 of device.pace_ms

// "averaging, H = 10 on 4 ranks".
std::string name_of(const Setting& setting);

StudyVerdict make_verdict(const Evidence& evidence);

// Whether more repetitions are not needed for the answer: yes or no in every environment.
bool decided(const Evidence& evidence);

// All sentences of the verdict in the order in which they are read: headline, rows, limits, caveats.
std::vector<std::string> sentences_of(const StudyVerdict& verdict);

}  // namespace echelon::inline report
