// SPDX-License-Identifier: Apache-2.0
// The wording of a verdict, from the findings of the judge. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "report/judge.hpp"

namespace echelon::inline report {

std::string said(const Setting& setting);                       // "4 ranks, ring"
std::string said(const std::vector<const Setting*>& settings);  // "a; b and c", "a; b; c and 7 other settings"
std::string times_text(double times);                           // "3.9x"
std::string interval_text(const Effect& effect);                // " (95 % interval 3.7 to 4.1)"; "" without an interval
// "3.9x faster to test accuracy 0.9 than one worker (95 % interval 3.7 to 4.1)"
std::string gain_text(const Field& field, const Effect& gain);
std::string goal_text(const Field& field);      // "test accuracy 0.9"
std::string repetitions_text(int repetitions);  // "3 repetitions"

// Returns the answer for an environment with its headline.
EnvironmentVerdict answer_of(const Judge& judge);
// Returns rows "If you want .. then ..", in the order in which people ask.
std::vector<GoalRow> goal_rows(const Judge& judge);
// limits_of: what limits the speed, and up to how many ranks more ranks pay. caveats_of: what to keep in mind.
std::vector<std::string> limits_of(const Judge& judge);
std::vector<std::string> caveats_of(const Judge& judge);

}  // namespace echelon::inline report
