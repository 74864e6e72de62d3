// The words of a verdict, from what the judge found. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "report/judge.hpp"

namespace echelon::inline report {

std::string said(const Setting& setting);                       // "4 ranks, ring"
std::string said(const std::vector<const Setting*>& settings);  // "a; b and c", "a; b; c and 7 other settings"
std::string times_text(double times);                           // "3.9x"
std::string interval_text(const Effect& effect);                // " (95 % interval 3.7 to 4.1)"; "" where it has none
// "3.9x faster to test accuracy 0.9 than one worker (95 % interval 3.7 to 4.1)"
std::string gain_text(const Field& field, const Effect& gain);
std::string goal_text(const Field& field);      // "test accuracy 0.9"
std::string repetitions_text(int repetitions);  // "3 repetitions"

// The answer of an environment with its headline.
EnvironmentVerdict answer_of(const Judge& judge);
// "If you want .. then ..", in the order in which people ask.
std::vector<GoalRow> goal_rows(const Judge& judge);
// What limits the speed, and up to how many ranks it pays; what to keep in mind.
std::vector<std::string> limits_of(const Judge& judge);
std::vector<std::string> caveats_of(const Judge& judge);

}  // namespace echelon::inline report
