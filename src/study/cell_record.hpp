// What became of a cell, in <study>/<cell>/cell.json: a study that is started again goes on from these files. Whoever
// holds the lock of the cell's folder (job/run_lock.hpp) runs it and writes its file.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace echelon::inline study {

enum class CellState : std::uint8_t {
  waiting,   // not begun, or stopped by a signal
  running,   // or its job died with it
  finished,  // goals missed included
  diverged,  // exit code 5: a finding
  failed,    // another exit code, or its launch died with it kMostDeaths times (deaths.hpp)
  left_out,  // cannot be run: combination, memory, ..
  stopped,   // a trial of a search, after a rung; it goes on where its figure is good enough
};

// The goal's figure of a trial after so many epochs.
struct RungFigure {
  std::int64_t epochs = 0;
  double figure = 0;  // NaN: it has none
};

struct CellRecord {
  CellState state = CellState::waiting;
  int deaths = 0;           // of launches that ran it, as far as they count (deaths.hpp)
  std::int64_t step = 0;    // of its newest checkpoint when it began
  std::string before = {};  // newest attempt when it began; "": none
  std::string launch = {};  // that runs it, or ran it last
  int exit_code = 0;
  std::string reason;       // of a cell that did not finish
  std::string attempt;      // folder of the attempt that ended the cell; "": none
  double seconds = 0;       // of the cell, all tries that came to an end
  double memory_bytes = 0;  // foretold when it began, of the rank that takes most; 0: not known
  double sharpness = std::numeric_limits<double>::quiet_NaN();  // of its minimum; NaN: not measured
  std::vector<RungFigure> rungs = {};                           // of a search
  // What it was, for whoever reads the folder: written by the ledger, never read back.
  std::string environment = {}, setting = {};
  int repeat = 0;  // 0: not known
  std::uint64_t seed = 0;
  bool control = false;
  // "finished", "diverged" or "failed"; "" for a cell without an outcome.
  std::string outcome() const;
  bool over() const { return state != CellState::waiting && state != CellState::running; }
};

std::string name_of(CellState state);
// `folder`: of the cell. A new record where there is none; DataError with the path where it cannot be read.
CellRecord read_cell(const std::string& folder);
void write_cell(const std::string& folder, const CellRecord& record);
// The checkpoints of all runs of a cell, those set aside too, are removed; what cannot be is left.
void remove_checkpoints(const std::string& folder);

}  // namespace echelon::inline study
