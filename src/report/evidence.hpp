// What a study shows: every setting that was run, repetitions together, beside the best single worker. What the verdict
// (verdict.hpp) and the pages are made from. Reads metrics.jsonl of the runs where there is a goal; changes nothing.
#pragma once

#include <string>
#include <vector>

#include "config/goal.hpp"
#include "report/loss_budget.hpp"
#include "report/scaling.hpp"
#include "report/to_target.hpp"

namespace echelon::inline report {

struct LabelledRun {
  std::string label;             // of the variant: equal for the same variant on other numbers of ranks
  std::string environment = {};  // settings are compared inside one alone; "": there is one
  int repeat = 1;                // round of the study
  std::uint64_t seed = 0;
  std::string outcome = "finished";  // | "diverged" | "failed"
  int code = 0;                      // exit code of the cell
  double control = kUnknown;  // rate of the round's control cell against the median of all rounds, -0.2: 20 % slower
  RunRecord run;              // has a summary where the outcome is "finished"; `ranks` is always known
};

// A variant on a number of ranks.
struct Setting {
  std::string label;
  ScalingRow row;           // rate over all steps; speed-up and efficiency against the best single worker
  Spread samples, seconds;  // to the target; unknown: no repetition reached it
  int reached = 0;          // repetitions that did
  Spread trained;           // samples of a whole run
  Spread final_figure;      // the goal's, else accuracy or test loss, of the last evaluation
  double run_s = kUnknown;  // of a whole run: start-up, training, evaluations; median
  LossBudget budget;
  std::vector<std::vector<Evaluation>> curves;           // of every repetition; paced ones have none
  std::vector<Evaluation> curve;                         // of the first repetition
  std::string attempt;                                   // folder of the same
  int ranks() const { return row.ranks + row.servers; }  // all that it takes
  bool to_target() const { return reached > 0 && reached == row.attempts; }
  // Of a run to the target where there is one, else of a whole run.
  double wall_s(bool has_goal) const { return has_goal ? (to_target() ? seconds.median : kUnknown) : run_s; }
};

struct Evidence {
  GoalConfig goal;
  CostConfig cost;
  std::vector<Setting> settings;  // by ranks, then in the order of the labels
  int baseline = -1;              // the setting of one rank (else of the fewest) with the highest rate; -1: no run
  bool has_goal() const { return goal.metric != GoalMetric::none; }
  const Setting& best_single() const { return settings[static_cast<std::size_t>(baseline)]; }
  bool single_is_one() const { return baseline >= 0 && best_single().ranks() == 1; }
  // Host-hours and price of a run (to the target where there is a goal); unknown where it did not get there, or where
  // an hour has no price.
  double node_hours(const Setting& setting) const { return node_hours(setting, setting.wall_s(has_goal())); }
  double price(const Setting& setting) const { return price(setting, setting.wall_s(has_goal())); }
  // Of so many seconds on the hosts of the setting.
  double node_hours(const Setting& setting, double seconds) const;
  double price(const Setting& setting, double seconds) const;

  // Where along the curves, in samples or in seconds, settings are compared. A setting ends where the shortest of its
  // repetitions does; this is the first end at which more than half of the evaluated settings have a figure. Unknown
  // where there is none.
  double common_point(double Evaluation::*axis) const;
  // The figure that final_figure names, over the repetitions, so far along their curves: interpolated linearly between
  // two evaluations, unknown before the first. After the last one unknown in samples, and in seconds that of the last.
  Spread figure_at(const Setting& setting, double Evaluation::*axis, double where) const;
  // Seconds since the start of the run after so many samples; likewise, the median of the repetitions.
  double seconds_after(const Setting& setting, double samples) const;
};

// The figure of the curves, and by which settings are compared: the goal's, else accuracy or test loss. There is a
// setting.
GoalMetric shown_metric(const Evidence& evidence);

Evidence make_evidence(const std::vector<LabelledRun>& runs, const GoalConfig& goal, const CostConfig& cost);

}  // namespace echelon::inline report
