// How the machine was in each round of a study: the rate of the same cell in all of them.
//
// The control cell of a round is the first setting of the file, in the first environment, on the fewest ranks: for most
// studies the single worker. It is a cell of the study like others and costs nothing more; its seed is that of the
// round, on which its rate does not depend. A round is marked where its rate is more than kMostMoved from the median of
// all rounds.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline study {

constexpr double kMostMoved = 0.05;

struct RoundControl {
  int round = 1;
  double rate = 0;    // samples/s of its control cell; NaN: it has none
  double change = 0;  // against the median of all rounds: -0.2 is 20 % slower; NaN without a rate
  bool moved = false;
};

// `rates`: by round, from 1; NaN: none.
std::vector<RoundControl> judge_rounds(const std::vector<double>& rates);

// One line for each round that moved, and one for all where none has; "" for fewer than 2 rates.
std::string control_text(const std::vector<RoundControl>& rounds);
// For <study>/rounds.json.
std::string control_json(const std::vector<RoundControl>& rounds);

}  // namespace echelon::inline study
