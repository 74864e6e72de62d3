// A study: one experiment, run in many cells. The file is the experiment's, with a section [study] that `train` skips:
//
//   [study]
//   ranks = [1, 2, 4, 8]                    # launched at once are the most; a cell takes part of them
//   mode = "strong"                         # weak: batch.scale_with_replicas; to_target: goal.stop
//   repeats = 3                             # rounds: seed, seed + 1, ..; "until decided": 3, 5, 10, 20, .. of them
//   max_repeats = 20                        # of repeats = "until decided"
//   order = "shuffled"                      # cells of a round, by the seed; "file": as they are written
//   keep = "all"                            # "records": no checkpoint of a cell that is over
//   warmup_steps = 5                        # of each cell, 1 at least: no part of its rates; start-up in its budget
//   placement = "compact"                   # on as few hosts as hold the ranks; spread: on as many
//   budget_hours = 8                        # no cell begins once its cells have taken so long together; 0: no limit
//   network = false                         # true: the network of a launch is measured before its cells
//   margin = 0.01                           # of the metric: how much worse still is of equal quality
//   least_gain = 0.10                       # a gain below that is none
//   sharpness = 1e-3                        # of each finished cell's minimum, in this box (inference/sharpness.hpp)
//   slurm = ["--time=02:00:00"]             # options of sbatch for the jobs of `scale --slurm`
//   verb = "bench allreduce"                # what a cell runs, with args = ["--sizes", "1MiB"]; default: train
//   [study.axes]
//   "exchange.algorithm" = ["ring", "tree"] # every value with every value of the other axes
//   "study.placement" = ["compact", "spread"] # likewise "study.hosts" = [1, 2], "study.search", options "--sizes"
//   [[study.variants]]                      # keys that change together; every variant with every value
//   name = "averaging, H = 10"
//   set = ["exchange.strategy=averaging", "exchange.averaging.period=10"]
//   layers = [{ type = "dense", units = 10 }] # another model; or file = "other.toml", another experiment
//   [[study.environments]]                  # every cell in each; settings are compared inside one alone
//   name = "one rank 4x slow"
//   set = ["device.pace_factors=[4,1]"]
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
//
// With an axis "study.search" = ["random", "bayesian"] each cell is such a search, and they are compared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "report/study_rules.hpp"
#include "study/search/halving.hpp"
#include "study/search/proposer.hpp"

namespace echelon::inline study {

enum class StudyMode : std::uint8_t { strong, weak, to_target };
enum class CellPlacement : std::uint8_t { compact, spread };
enum class CellOrder : std::uint8_t { shuffled, file };
enum class CellKeep : std::uint8_t { all, records };

struct StudyVariant {
  std::string name;
  std::vector<std::string> sets;  // "section.key=value", "study.placement=..", "--option=value"
  std::string where;              // file:line:column
  std::string file = {};          // another experiment; "": the study's
};

// What a cell runs in, and never compared across: keys as in a variant.
struct StudyEnvironment {
  std::string name;
  std::vector<std::string> sets;
  std::string where;  // file:line:column
};

struct StudyAxis {
  std::string key;
  std::vector<std::string> values;  // as written behind "="
};

struct StudyPlan {
  std::string file, name, folder;  // folder of all its cells: <run.results>/<name>
  std::vector<std::string> sets;   // of the command line, for every cell
  std::string experiment;          // hash of what the file trains: its cells are others once that changes
  std::uint64_t seed = 1;          // of the first repeat
  StudyMode mode = StudyMode::strong;
  std::vector<std::int64_t> ranks;
  std::int64_t repeats = 1, warmup_steps = 1;
  bool until_decided = false;  // repeats is then their greatest number
  CellOrder order = CellOrder::shuffled;
  CellKeep keep = CellKeep::all;
  CellPlacement placement = CellPlacement::compact;
  double budget_hours = 0;
  StudyRules rules;      // margin, least_gain
  double sharpness = 0;  // half width of the box in which a finished cell's minimum is measured; 0: it is not
  bool network = false;
  std::vector<std::string> slurm;
  bool on_gpus = false;                // device.kind of the experiment is "cuda"
  std::vector<StudyVariant> variants;  // empty: the experiment as it is
  std::vector<StudyAxis> axes;
  std::vector<StudyEnvironment> environments;  // empty: one without a name
  std::string verb = "train";                  // kStudyVerbs
  std::vector<std::string> args;               // of another verb
  std::optional<SearchMethod> search;          // none: every cell
  std::int64_t trials = 30, grid_steps = 4;    // trials: of a grid, at most as many as it has
  std::vector<SearchRange> ranges;
  std::optional<HalvingOptions> halving;
  std::vector<std::int64_t> rungs;  // of a search: epochs after which trials are compared, the last one the whole run's
  std::int64_t side_by_side = 0;    // cells at once; 0: one, and of a search as many as fit the launch
  GoalConfig goal;                  // of the experiment

  bool maximises() const { return goal.metric == GoalMetric::test_accuracy; }
};

inline constexpr const char* kStudyVerbs[] = {"train", "bench allreduce", "bench update", "plan", "supervise", "run"};

// What is common to the cells of a setting.
struct StudySetting {
  std::string text;               // for people: "ring, batch.global = 64"; "" where there is one setting alone
  std::vector<std::string> sets;  // as a variant's
  std::string file = {};          // "": the study's
};

// One run of a study.
struct StudyCell {
  std::string id;    // of its folder: "k4_ring_r2-1f3a9c", unique in the study
  std::string text;  // of its setting
  int ranks = 1;
  int repeat = 1;  // from 1
  std::string file;
  CellPlacement placement = CellPlacement::compact;
  int hosts = 0;                     // that its ranks are spread over evenly; 0: by placement
  std::string search;                // a proposer: the cell is a search
  std::vector<std::string> options;  // of another verb than train
  std::vector<std::string> sets;

  // Not known to other ranks than the first, whose list of cells has it.
  std::uint64_t seed = 1;
  std::vector<std::string> environments = {""};  // that ask for it
  std::vector<std::string> asked = {};           // settings that ask for it, where they are several
  bool control = false;                          // measures the machine in its round (control.hpp)
  std::string title() const;                     // text and environment
};

// Reads the file. ConfigError with file:line:column and the nearest valid choice for what is wrong in [study]; for the
// rest of the file what load_config throws.
StudyPlan load_study(const std::string& path, const std::vector<std::string>& sets);

// Of an experiment, whatever its [study]: its name, folder and goal; one cell.
StudyPlan plain_study(const std::string& path, const std::vector<std::string>& sets);

// The experiment's config, with the first values of axes where it cannot be run without them.
Config base_config(const StudyPlan& study);

// Every variant with every value of the axes, in the order of the file, the last axis fastest. `words`: the parts of
// the name: the variant's, then one an axis.
struct StudyChoice {
  std::vector<std::string> words;
  std::vector<std::string> sets;
  std::string file;
  std::string text() const;
};
std::vector<StudyChoice> study_choices(const StudyPlan& study);

// A cell with these settings on top of the study's own. ConfigError for a key study.* that cells do not have.
StudyCell make_cell(const StudyPlan& study, const StudySetting& setting, int ranks, int repeat,
                    const StudyEnvironment& environment = {});

// A trial of a search as it trains up to this rung: with the learning rates of the whole run.
StudyCell at_rung(const StudyPlan& study, const StudyCell& trial, std::size_t rung);

// The search that a cell is.
StudyPlan search_of(const StudyPlan& study, const StudyCell& cell);

// Where a cell leaves its files: <study>/<cell>.
std::string folder_of(const StudyPlan& study, const StudyCell& cell);

// A cell as one line for other ranks, and back.
std::string to_line(const StudyCell& cell);
StudyCell cell_of_line(const std::string& line);

// Every cell of a study that does not search, in the order of the file: round by round, in a round by ranks, then
// environment, then setting. Settings that are the same run on so many ranks (equal_settings.hpp) share one cell. Reads
// the experiment.
std::vector<StudyCell> cells_of(const StudyPlan& study);

// The order in which they are run: one round after another, so that the noise of an hour falls on all alike, and in a
// round as study.order says. Indices of `cells`.
std::vector<std::size_t> run_order(const StudyPlan& study, const std::vector<StudyCell>& cells);

// Rounds after which a study looks whether its verdict is decided, the last one study.repeats; without "until decided"
// that one alone.
std::vector<int> looks_of(const StudyPlan& study);

}  // namespace echelon::inline study
