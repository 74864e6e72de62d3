// SPDX-License-Identifier: Apache-2.0
// A study: one experiment, run in many cells. Its file is the experiment's, plus a section [study] that `train` skips:
//
//   [study]
//   ranks = [1, 2, 4, 8]                    # sizes of cells; launch the largest, and cells use part of the ranks
//   mode = "strong"                         # weak: batch.scale_with_replicas; to_target: goal.stop
//   repeats = 3                             # rounds with seeds seed, seed + 1, ..; "until decided": 3, 5, 10, 20, ..
//   max_repeats = 20                        # limit for repeats = "until decided"
//   order = "shuffled"                      # order of a round's cells, by the seed; "file": as they are written
//   keep = "all"                            # "records": removes the checkpoints of cells that are over
//   warmup_steps = 5                        # at least 1; not part of a cell's rates, but of its start-up in the budget
//   placement = "compact"                   # on as few hosts as hold the ranks; spread: on as many as possible
//   budget_hours = 8                        # once the cells have taken this long together, none begins; 0: no limit
//   network = false                         # true: measure the launch's network before its cells
//   margin = 0.01                           # how much worse the metric may be at equal quality, relative
//   least_gain = 0.10                       # smaller gains count as none
//   sharpness = 1e-3                        # box in which each finished cell's minimum is measured (inference/)
//   slurm = ["--time=02:00:00"]             # options of sbatch for the jobs of `scale --slurm`
//   verb = "bench allreduce"                # runs this in a cell, with args = ["--sizes", "1MiB"]; default: train
//   [study.axes]
//   "exchange.algorithm" = ["ring", "tree"] # every value is combined with every value of the other axes
//   "study.placement" = ["compact", "spread"] # possible too: "study.hosts" = [1, 2], "study.search", options "--sizes"
//   [[study.variants]]                      # keys that change together; every variant is combined with every value
//   name = "averaging, H = 10"
//   set = ["exchange.strategy=averaging", "exchange.averaging.period=10"]
//   layers = [{ type = "dense", units = 10 }] # another model; or file = "other.toml", another experiment
//   [[study.environments]]                  # every cell runs in each; settings are compared only within one
//   name = "one rank 4x slow"
//   set = ["device.pace_factors=[4,1]"]
//
// Or a search, on one number of ranks, for the best figure of the metric in [goal]:
//
//   search = "bayesian"                     # grid, random, bayesian (search/proposer.hpp)
//   trials = 30
//   grid_steps = 4                          # for a grid: values of each range
//   [study.ranges]                          # in addition to axes, which are choices
//   "optimizer.learning_rate" = { low = 1e-4, high = 1.0, log = true }
//   halving = { eta = 3, first_epochs = 2 } # stops hopeless trials early (search/halving.hpp)
//   side_by_side = 4                        # simultaneous trials, each on its own ranks; 0: as many as fit the launch
//
// With an axis "study.search" = ["random", "bayesian"] each cell is such a search, and the searches are compared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/goal.hpp"
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

// The conditions that a cell runs in. Settings are never compared across environments. Keys as in a variant.
struct StudyEnvironment {
  std::string name;
  std::vector<std::string> sets;
  std::string where;  // file:line:column
};

struct StudyAxis {
  std::string key;
  std::vector<std::string> values;  // as written after "="
};

struct StudyPlan {
  std::string file, name, folder;  // folder of all its cells: <run.results>/<name>
  std::vector<std::string> sets;   // from the command line, for every cell
  std::string experiment;          // hash of what the file trains; if it changes, the cells are different ones
  std::uint64_t seed = 1;          // seed of the first repeat
  StudyMode mode = StudyMode::strong;
  std::vector<std::int64_t> ranks;
  std::int64_t repeats = 1, warmup_steps = 1;
  bool until_decided = false;  // `repeats` is then the limit
  CellOrder order = CellOrder::shuffled;
  CellKeep keep = CellKeep::all;
  CellPlacement placement = CellPlacement::compact;
  double budget_hours = 0;
  StudyRules rules;      // margin, least_gain
  double sharpness = 0;  // half width of the box in which a finished cell's minimum is measured; 0: off
  bool network = false;
  std::vector<std::string> slurm;
  bool on_gpus = false;                // device.kind of the experiment is "cuda"
  std::vector<StudyVariant> variants;  // empty: the experiment as it is
  std::vector<StudyAxis> axes;
  std::vector<StudyEnvironment> environments;  // empty: one without a name
  std::string verb = "train";                  // kStudyVerbs
  std::vector<std::string> args;               // arguments of a verb other than train
  std::optional<SearchMethod> search;          // none: every cell is run
  std::int64_t trials = 30, grid_steps = 4;    // trials: for a grid at most its size
  std::vector<SearchRange> ranges;
  std::optional<HalvingOptions> halving;
  std::vector<std::int64_t> rungs;  // for a search: epochs after which trials are compared; the last is the whole run
  std::int64_t side_by_side = 0;    // simultaneous cells; 0: one, or for a search as many as fit the launch
  GoalConfig goal;                  // goal of the experiment

  bool maximises() const { return goal_rises(goal.metric); }
};

inline constexpr const char* kStudyVerbs[] = {"train", "bench allreduce", "bench update", "plan", "supervise", "run"};

// The settings that cells share.
struct StudySetting {
  std::string text;               // for people: "ring, batch.global = 64"; "" if there is only one setting
  std::vector<std::string> sets;  // as in a variant
  std::string file = {};          // "": the study's
};

// One run of a study.
struct StudyCell {
  std::string id;    // name of its folder: "k4_ring_r2-1f3a9c", unique in the study
  std::string text;  // text of its setting
  int ranks = 1;
  int repeat = 1;  // from 1
  std::string file;
  CellPlacement placement = CellPlacement::compact;
  int hosts = 0;                     // hosts that its ranks are spread over evenly; 0: by placement
  std::string search;                // name of a proposer if the cell is a search
  std::vector<std::string> options;  // options for a verb other than train
  std::vector<std::string> sets;

  // Known only on the first rank, whose list of cells has it.
  std::uint64_t seed = 1;
  std::vector<std::string> environments = {""};  // environments that contain it
  std::vector<std::string> asked = {};           // settings that share it, if there are several
  bool control = false;                          // measures the machine in its round (control.hpp)
  std::string title() const;                     // text and environment
};

// Reads the file. Throws ConfigError with file:line:column and the nearest valid choice for errors in [study], and the
// errors of load_config for the rest of the file.
StudyPlan load_study(const std::string& path, const std::vector<std::string>& sets);

// A plan with the name, folder and goal of an experiment, whatever its [study], and one cell.
StudyPlan plain_study(const std::string& path, const std::vector<std::string>& sets);

// The experiment's config; if it cannot run without the axes, with their first values.
Config base_config(const StudyPlan& study);

// Every variant combined with every value of the axes, in the order of the file; the last axis varies fastest. `words`:
// the parts of the name: the variant's name, then one word per axis.
struct StudyChoice {
  std::vector<std::string> words;
  std::vector<std::string> sets;
  std::string file;
  std::string text() const;
};
std::vector<StudyChoice> study_choices(const StudyPlan& study);

// Makes a cell with these settings on top of the study's own. Throws ConfigError for a key study.* that cells lack.
StudyCell make_cell(const StudyPlan& study, const StudySetting& setting, int ranks, int repeat,
                    const StudyEnvironment& environment = {});

// A trial of a search as it trains up to this rung, with the learning rates of the whole run.
StudyCell at_rung(const StudyPlan& study, const StudyCell& trial, std::size_t rung);

// The search that a cell stands for.
StudyPlan search_of(const StudyPlan& study, const StudyCell& cell);

// The folder of a cell's files: <study>/<cell>.
std::string folder_of(const StudyPlan& study, const StudyCell& cell);

// Serialise a cell as one line for other ranks, and parse it.
std::string to_line(const StudyCell& cell);
StudyCell cell_of_line(const std::string& line);

// Returns every cell of a study that does not search, in the order of the file: by round, then ranks, then environment,
// then setting. Settings that are the same run on a number of ranks (equal_settings.hpp) share one cell. Reads the
// experiment.
std::vector<StudyCell> cells_of(const StudyPlan& study);

// Returns the order in which cells run, as indices of `cells`: one round after another, so that changes of load affect
// all settings alike, and within a round as study.order says.
std::vector<std::size_t> run_order(const StudyPlan& study, const std::vector<StudyCell>& cells);

// Returns the rounds after which a study checks whether its verdict is decided; the last one is study.repeats. Without
// "until decided" it is the only one.
std::vector<int> looks_of(const StudyPlan& study);

}  // namespace echelon::inline study
