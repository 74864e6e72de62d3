// The answer of a study in words: should this training be distributed, over how many ranks, and how? Every sentence
// follows from the figures of evidence.hpp by a stated rule, and names them.
//
// Rules. Speed is the time to the target where there is a goal that the single worker reaches, else samples/s. One
// setting is faster than another where its slowest repetition is faster than the other's fastest one; a setting that is
// not faster than one worker is called no better than one worker, whatever its rate.
//
// Figures and costs are compared after equal samples: those of whole runs where all are equally long, else where the
// first setting ends, between two evaluations by linear interpolation; and at equal times: at the deadline where one is
// given, else likewise. A setting that ends before most others are evaluated does not count as the first. A run that
// has ended keeps the figure of its last evaluation as time goes on. Costs are those of getting to the target where
// some setting gets there. Nothing is compared that fewer than two settings have.
#pragma once

#include <string>
#include <vector>

#include "report/evidence.hpp"

namespace echelon::inline report {

struct GoalLine {
  bool met = false;
  std::string text;
};

struct StudyVerdict {
  std::vector<std::string> lines;  // whole sentences
  std::vector<GoalLine> goals;     // of [goal]; empty: none was set
  int recommended = -1;            // index of Evidence::settings; -1: one worker, or nothing was measured
  bool met() const;
};

inline constexpr double kBusyFloor = 0.7;  // share of a single worker's step that it computes: below, mend it first
// Share of the measured peak at which it computes: below, its layers are worth a look. A rule of thumb for models whose
// time goes into large matrix products; memory traffic bounds small ones.
inline constexpr double kPeakFloor = 0.5;
inline constexpr double kPaceMissed = 0.05;  // share of a rank's steps that took more than 1.05 of device.pace_ms
inline constexpr double kKneeGain = 1.1;     // a larger size that gains less is beyond the knee

// "averaging, H = 10 on 4 ranks".
std::string name_of(const Setting& setting);

StudyVerdict make_verdict(const Evidence& evidence);

}  // namespace echelon::inline report
