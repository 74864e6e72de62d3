// SPDX-License-Identifier: Apache-2.0
// Decides which cells of a study a launch's death counts against.
//
// A launch that is gone leaves cells in state `running`: one, or several if lanes ran side by side. For these cells:
//
//   stopped by a signal          not counted
//   a rank reported an error     counted against the cell that reported first; the others died with it
//   neither                      ranks were killed, crashed or hung: counted against each; these then run one at a time
//
// If a cell has a new checkpoint since it began, the death does not count and earlier deaths are forgotten, unless a
// rank reported an error. Launches die for other reasons too (a host, a time limit), and a cell that makes progress
// will end.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline study {

constexpr int kMostDeaths = 2;  // deaths that count before a cell is given up

// The traces of a cell that was running when its launch died.
struct CellDeath {
  enum class Told : std::uint8_t { nothing, stopped, error };
  std::string launch;         // CellRecord::launch
  Told told = Told::nothing;  // the end that its newest attempt's status reports
  double told_s = 0;          // time of that status, by the clock of the file system
  bool progressed = false;    // it has a newer checkpoint than when it began
};

enum class Blame : std::uint8_t {
  spared,   // no change
  cleared,  // earlier deaths are forgotten
  counted,
};
// Judges cells that were found dead together; returns one result per cell, in order.
std::vector<Blame> judge_deaths(const std::vector<CellDeath>& deaths);

}  // namespace echelon::inline study
