// Which cells of a study the deaths of their launches count against.
//
// A launch that is gone has left cells behind in state `running`: one, or several of lanes side by side. Of those:
//
//   stopped by a signal        not counted
//   a rank told of an error    counted against the first cell that told; the others were taken along
//   neither                    ranks were killed, crashed or hung: counted against each, which then run in turns
//
// Where the cell has a new checkpoint since it began, the death is not counted and those before are forgotten, unless a
// rank told of an error: launches die for other reasons too (a host, a limit of time), and a cell that gets on will
// end.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline study {

constexpr int kMostDeaths = 2;  // that count, until a cell is given up

// What a cell has left that was running when its launch died.
struct CellDeath {
  enum class Told : std::uint8_t { nothing, stopped, error };
  std::string launch;         // CellRecord::launch
  Told told = Told::nothing;  // by the status of its newest attempt
  double told_s = 0;          // when, by the clock of the file system
  bool progressed = false;    // has a newer checkpoint than when it began
};

enum class Blame : std::uint8_t {
  spared,   // nothing changes
  cleared,  // deaths before it are forgotten
  counted,
};
// Of cells that were found dead together, in their order.
std::vector<Blame> judge_deaths(const std::vector<CellDeath>& deaths);

}  // namespace echelon::inline study
