// SPDX-License-Identifier: Apache-2.0
// Tracks the speed of the machine over the rounds of a study by the rate of one cell that every round runs.
//
// The control cell of a round is the first setting of the file, in the first environment, on the fewest ranks: in most
// studies the single worker. It is an ordinary cell of the study and costs nothing extra. Its seed is that of the
// round; its rate does not depend on it. A round is marked if its rate differs by more than kMostMoved from the median
// of all rounds.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline study {

constexpr double kMostMoved = 0.05;

struct RoundControl {
  int round = 1;
  double rate = 0;    // samples/s of its control cell; NaN: none
  double change = 0;  // relative to the median of all rounds: -0.2 is 20 % slower; NaN without a rate
  bool moved = false;
};

// `rates`: one per round, from round 1; NaN: none.
std::vector<RoundControl> judge_rounds(const std::vector<double>& rates);

// One line per round that moved, or a single line if none did; "" for fewer than 2 rates.
std::string control_text(const std::vector<RoundControl>& rounds);
// Content of <study>/rounds.json.
std::string control_json(const std::vector<RoundControl>& rounds);

}  // namespace echelon::inline study
