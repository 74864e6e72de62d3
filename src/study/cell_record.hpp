// SPDX-License-Identifier: Apache-2.0
// The state of a cell, in <study>/<cell>/cell.json. A study that is started again continues from these files. Whoever
// holds the lock of the cell's folder (job/run_lock.hpp) runs the cell and writes its file.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace echelon::inline study {

enum class CellState : std::uint8_t {
  waiting,   // not begun, or stopped by a signal
  running,   // or its job died while running it
  finished,  // also if it missed goals
  diverged,  // exit code 5, which is a result
  failed,    // another exit code, or it died with kMostDeaths of its launches (deaths.hpp)
  left_out,  // cannot run: combination, memory, ..
  stopped,   // a trial of a search, after a rung; it continues if its figure is good enough
};

// The goal's figure of a trial after this many epochs.
struct RungFigure {
  std::int64_t epochs = 0;
  double figure = 0;  // NaN: none
};

struct CellRecord {
  CellState state = CellState::waiting;
  int deaths = 0;           // deaths of launches that ran it, as far as they count (deaths.hpp)
  std::int64_t step = 0;    // step of its newest checkpoint when it began
  std::string before = {};  // newest attempt when it began; "": none
  std::string launch = {};  // launch that runs it, or ran it last
  int exit_code = 0;
  std::string reason;       // why the cell did not finish
  std::string attempt;      // folder of the attempt that ended the cell; "": none
  double seconds = 0;       // seconds of all tries that came to an end
  double memory_bytes = 0;  // prediction when it began, for the rank that needs most; 0: not known
  double sharpness = std::numeric_limits<double>::quiet_NaN();  // sharpness of its minimum; NaN: not measured
  std::vector<RungFigure> rungs = {};                           // for a search
  // Describes the cell to readers of the folder. The ledger writes these fields and never reads them back.
  std::string environment = {}, setting = {};
  int repeat = 0;  // 0: not known
  std::uint64_t seed = 0;
  bool control = false;
  // "finished", "diverged" or "failed"; "" for a cell without an outcome.
  std::string outcome() const;
  bool over() const { return state != CellState::waiting && state != CellState::running; }
};

std::string name_of(CellState state);
// `folder` is the cell's. Returns a new record if there is none; throws DataError, with the path, if it cannot be read.
CellRecord read_cell(const std::string& folder);
void write_cell(const std::string& folder, const CellRecord& record);
// Removes the checkpoints of all runs of a cell, including set-aside ones, and leaves any that it cannot remove.
void remove_checkpoints(const std::string& folder);

}  // namespace echelon::inline study
