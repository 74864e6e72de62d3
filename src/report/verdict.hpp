// SPDX-License-Identifier: Apache-2.0
// The answer of a study: should this training be distributed, over how many ranks, and how? The whole answer follows
// from the evidence by the rules below; nothing else is read.
//
// The unit is a repetition (seed). Settings of one environment are compared over pairs of repetitions of the same
// round: times and rates by the logarithms of their ratios, metrics by their differences (contest.hpp).
//
//   single worker   the baseline, chosen from the settings on one rank. With a goal: the one that reached it most
//                   often, then soonest. Otherwise: the fastest of those whose final metric is not worse than the best
//                   one's. Among rates within 1 %, the plainest setting (baseline.hpp).
//   equal quality   With a goal that some setting reached: the setting reached it in every repetition. Otherwise: the
//                   metric is shown to be not worse than the single worker's by more than the margin, which is the
//                   larger of study.margin times the metric and the single worker's standard deviation over seeds. A
//                   setting that diverges in a larger share of its repetitions than the single worker fails this.
//   faster          Yes: the gain is shown to be more than study.least_gain. No: for every setting, the gain is shown
//                   to be less, or quality is shown to be worse. Otherwise: not decided.
//   shown           The one-sided p is at most the level: 5 % over all compared settings (Holm) and looks (looks.hpp).
//   tie             Settings of equal quality that the fastest is not shown to beat by more than the least gain. Among
//                   those within that gain of the lowest cost, the one on the fewest ranks is recommended, then
//                   the plainest.
//
// A diverged repetition is worse than every finite result, and a repetition that did not reach the goal is later than
// every one that did. With fewer than three repetitions no winner is named.
//
// Figures and costs are compared after equal samples: after the whole run if all are equally long, else where the first
// setting ends, with linear interpolation between evaluations. They are also compared at equal times: at the deadline
// if one is given, else where the first setting ends. A setting that ends before most others are evaluated does not
// count as the first. A finished run keeps the figure of its last evaluation as time goes on. A figure that fewer than
// two settings have is not compared.
#pragma once

#include <string>
#include <vector>

#include "report/evidence.hpp"

namespace echelon::inline report {

inline constexpr double kBusyFloor = 0.7;  // share of its step that one worker computes; below, improve that first
// Share of the measured peak that the single worker should reach; below this, its layers are worth a look. A rule of
// thumb for models that spend their time in large matrix products; memory bandwidth bounds small ones.
inline constexpr double kPeakFloor = 0.5;
inline constexpr double kPaceMissed = 0.05;  // share of a rank's steps that took more than 1.05 x device.pace_ms

// "averaging, H = 10 on 4 ranks".
std::string name_of(const Setting& setting);

StudyVerdict make_verdict(const Evidence& evidence);

// Returns whether the answer is yes or no in every environment, so that no more repetitions are needed.
bool decided(const Evidence& evidence);

}  // namespace echelon::inline report
