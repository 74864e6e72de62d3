// What a study shows: every setting that was run, repetitions together, beside the best single worker. What the verdict
// (verdict.hpp) and the pages are made from.
#pragma once

#include <string>
#include <vector>

#include "config/goal.hpp"
#include "report/loss_budget.hpp"
#include "report/scaling.hpp"
#include "report/study_record.hpp"
#include "report/to_target.hpp"
#include "report/wire_table.hpp"

namespace echelon::inline report {

// A variant on a number of ranks, in one environment.
struct Setting {
  std::string label;
  std::string environment = {};
  ScalingRow row;  // of the finished repetitions: rate over all steps; speed-up, efficiency against the baseline
  Spread samples, seconds;  // to the target, of those that reached it; unknown: none did
  int reached = 0;          // repetitions that did
  int diverged = 0, failed = 0;
  Spread trained;           // samples of a whole run
  Spread final_figure;      // the goal's, else accuracy or test loss, of the last evaluation
  double run_s = kUnknown;  // of a whole run: start-up, training, evaluations; median
  LossBudget budget;
  std::vector<Repetition> repetitions;  // all of them, by round
  WireBytes wire;                       // of the first repetition that has it; empty: not recorded
  int all_ranks = 0;                    // that it takes, servers included
  int ranks() const { return all_ranks; }
  int finished() const { return row.attempts; }
  int tried() const { return static_cast<int>(repetitions.size()); }
  // Every repetition reached the target.
  bool to_target() const { return reached > 0 && reached == tried(); }
  // Servers, a split, a codec, a strategy: how many of these it has beyond one program that sums gradients.
  int parts_beyond_plain() const;
  // "reached 2 of 5, 3 diverged"; without a goal "2 of 5 finished, 3 diverged"; "" where all is well.
  std::string outcome_text(bool has_goal) const;
  // Of a run to the target where there is one, else of a whole run; median.
  double wall_s(bool has_goal) const { return has_goal ? (to_target() ? seconds.median : kUnknown) : run_s; }
};

inline bool has_price(const CostConfig& cost) { return cost.node_hour > 0 || cost.rank_hour > 0; }
// Of so many seconds on so many hosts and ranks; unknown where neither has a price.
double price_of(const CostConfig& cost, double hosts, double ranks, double seconds);

struct Evidence {
  GoalConfig goal;
  CostConfig cost;
  StudyRules rules = {};
  std::vector<Setting> settings;  // by environment, then by ranks, then in the order of the labels
  std::vector<ControlRate> controls = {};
  std::vector<std::string> environments{};  // in the order in which they first appear; one "" where there is one
  // By environment: the setting on one rank (else on the fewest ranks) that learns best, see baseline.hpp; -1: no run
  // finished there.
  std::vector<int> baselines = {};
  int baseline = -1;  // of the first environment that has one; -1: no run finished
  bool has_goal() const { return goal.metric != GoalMetric::none; }
  const Setting& best_single() const { return settings[static_cast<std::size_t>(baseline)]; }
  bool single_is_one() const { return baseline >= 0 && best_single().ranks() == 1; }
  // Of the setting's environment.
  int baseline_of(const Setting& setting) const;
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
  double common_point(double Evaluation::*axis, const std::string& environment) const;
  // The figure that final_figure names, over the repetitions, so far along their curves: interpolated linearly between
  // two evaluations, unknown before the first. After the last one unknown in samples, and in seconds that of the last.
  Spread figure_at(const Setting& setting, double Evaluation::*axis, double where) const;
  double figure_at(const Repetition& repetition, double Evaluation::*axis, double where) const;
  double final_figure(const Repetition& repetition) const;
  // Seconds since the start of the run after so many samples; likewise, the median of the repetitions.
  double seconds_after(const Setting& setting, double samples) const;
  static double seconds_after(const Repetition& repetition, double samples);
};

// The figure of the curves, and by which settings are compared: the goal's, else accuracy or test loss. There is a
// setting.
GoalMetric shown_metric(const Evidence& evidence);

// Reads metrics.jsonl and wire.json of the runs.
Evidence make_evidence(const std::vector<LabelledRun>& runs, const GoalConfig& goal, const CostConfig& cost,
                       const StudyRules& rules = {}, const std::vector<ControlRate>& controls = {});

// Everything that follows from the repetitions and rows of the settings and from goal, cost, rules and controls:
// spreads, counts, baselines, speed-ups, loss budgets. For evidence that was read back.
void complete(Evidence& evidence);

}  // namespace echelon::inline report
