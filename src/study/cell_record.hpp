// What became of a cell, in <study>/<cell>/cell.json: a study that is started again goes on from these files. Rank 0 of
// the launch that runs the cell writes them.
#pragma once

#include <cstdint>
#include <string>

namespace echelon::inline study {

enum class CellState : std::uint8_t {
  waiting,   // not begun, or stopped by a signal
  running,   // or its job died with it
  finished,  // goals missed included
  diverged,  // exit code 5: a finding
  failed,    // another exit code, or its job died with it kTries times
  left_out,  // cannot be run: combination, memory, ..
};

struct CellRecord {
  CellState state = CellState::waiting;
  int tries = 0;
  int exit_code = 0;
  std::string reason;   // of a cell that did not finish
  std::string attempt;  // folder of the attempt that ended the cell; "": none
  double seconds = 0;   // of the cell, all tries that came to an end
  bool over() const { return state != CellState::waiting && state != CellState::running; }
};

constexpr int kTries = 2;  // of a cell with which its job ends

std::string name_of(CellState state);
// `folder`: of the cell. A new record where there is none; DataError with the path where it cannot be read.
CellRecord read_cell(const std::string& folder);
void write_cell(const std::string& folder, const CellRecord& record);

}  // namespace echelon::inline study
