// A study: one experiment, run in many cells. The file is the experiment's, with a section [study] that `train` skips:
//
//   [study]
//   ranks = [1, 2, 4, 8]                    # launched at once are the most; a cell takes part of them
//   mode = "strong"                         # weak: batch.scale_with_replicas; to_target: goal.stop
//   repeats = 3                             # seed, seed + 1, ..
//   warmup_steps = 5                        # of each cell, 1 at least: no part of its rates; start-up in its budget
//   placement = "compact"                   # on as few hosts as hold the ranks; spread: on as many
//   budget_hours = 8                        # no cell begins once its cells have taken so long together; 0: no limit
//   network = false                         # true: the network of a launch is measured before its cells
//   slurm = ["--time=02:00:00"]             # options of sbatch for the jobs of `scale --slurm`
//   [study.axes]
//   "exchange.algorithm" = ["ring", "tree"] # every value with every value of the other axes
//   [[study.variants]]                      # keys that change together; every variant with every value
//   name = "averaging, H = 10"
//   set = ["exchange.strategy=averaging", "exchange.averaging.period=10"]
//
// Or a search, on one number of ranks, for the best figure of [goal] metric:
//
//   search = "bayesian"                     # grid, random, bayesian (search/proposer.hpp)
//   trials = 30
//   grid_steps = 4                          # of a grid: values of each range
//   [study.ranges]                          # beside axes, which are choices
//   "optimizer.learning_rate" = { low = 1e-4, high = 1.0, log = true }
//   halving = { eta = 3, first_epochs = 2 } # early stopping of hopeless trials (search/halving.hpp)
//   side_by_side = 4                        # trials at once, each on ranks of its own; 0: as many as fit the launch
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "study/search/halving.hpp"
#include "study/search/proposer.hpp"

namespace echelon::inline study {

enum class StudyMode : std::uint8_t { strong, weak, to_target };
enum class CellPlacement : std::uint8_t { compact, spread };

struct StudyVariant {
  std::string name;
  std::vector<std::string> sets;  // "section.key=value"
  std::string where;              // file:line:column
};

struct StudyAxis {
  std::string key;
  std::vector<std::string> values;  // as written behind "="
};

struct StudyPlan {
  std::string file, name, folder;  // folder of all its cells: <run.results>/<name>
  std::vector<std::string> sets;   // of the command line, for every cell
  std::uint64_t seed = 1;          // of the first repeat
  StudyMode mode = StudyMode::strong;
  std::vector<std::int64_t> ranks;
  std::int64_t repeats = 1, warmup_steps = 1;
  CellPlacement placement = CellPlacement::compact;
  double budget_hours = 0;
  bool network = false;
  std::vector<std::string> slurm;
  std::vector<StudyVariant> variants;  // empty: the experiment as it is
  std::vector<StudyAxis> axes;
  std::optional<SearchMethod> search;        // none: every cell
  std::int64_t trials = 30, grid_steps = 4;  // trials: of a grid, at most as many as it has
  std::vector<SearchRange> ranges;
  std::optional<HalvingOptions> halving;
  std::vector<std::int64_t> rungs;  // of a search: epochs after which trials are compared, the last one the whole run's
  std::int64_t side_by_side = 0;    // cells at once; 0: one, and of a search as many as fit the launch
  GoalConfig goal;                  // of the experiment

  bool maximises() const { return goal.metric == GoalMetric::test_accuracy; }
};

// One run of a study.
struct StudyCell {
  std::string id;    // of its folder: "k4_ring_r2-1f3a9c", unique in the study
  std::string text;  // for people: "ring, batch.global = 64"; "" where ranks and repeats alone differ
  int ranks = 1;
  int repeat = 1;  // from 1
  std::vector<std::string> sets;
};

// Reads the file. ConfigError with file:line:column and the nearest valid choice for what is wrong in [study]; for the
// rest of the file what load_config throws.
StudyPlan load_study(const std::string& path, const std::vector<std::string>& sets);

// Of an experiment, whatever its [study]: its name, folder and goal; one cell.
StudyPlan plain_study(const std::string& path, const std::vector<std::string>& sets);

// A cell with these settings on top of the study's own.
StudyCell make_cell(const StudyPlan& study, const std::string& text, const std::vector<std::string>& sets, int ranks,
                    int repeat);

// A trial of a search as it trains up to this rung: with the learning rates of the whole run.
StudyCell at_rung(const StudyPlan& study, const StudyCell& trial, std::size_t rung);

// Where a cell leaves its files: <study>/<cell>.
std::string folder_of(const StudyPlan& study, const StudyCell& cell);

// A cell as one line for other ranks, and back.
std::string to_line(const StudyCell& cell);
StudyCell cell_of_line(const std::string& line);

// Every cell of a study that does not search, in the order in which they are run: all cells once, then all once more,
// so that the noise of an hour falls on all alike. Sizes within a round by turns too.
std::vector<StudyCell> cells_of(const StudyPlan& study);

}  // namespace echelon::inline study
