// SPDX-License-Identifier: Apache-2.0
// The evidence of a study: every setting that was run, with its repetitions, beside the best single worker. The verdict
// (verdict.hpp) and the pages are made from it.
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

// A variant on a given number of ranks, in one environment.
struct Setting {
  std::string label;
  std::string environment = {};
  ScalingRow row;           // finished repetitions: rate over all steps; speed-up and efficiency against the baseline
  Spread samples, seconds;  // until the target, over the repetitions that reached it; unknown: none
  int reached = 0;          // repetitions that reached the target
  int diverged = 0, failed = 0;
  Spread trained;           // samples of a whole run
  Spread final_figure;      // last evaluation: the goal's metric, else accuracy or test loss
  double run_s = kUnknown;  // median of a whole run: start-up, training, evaluations
  LossBudget budget;
  std::vector<Repetition> repetitions;  // all repetitions, in the order of rounds
  WireBytes wire;                       // from the first repetition that recorded it; empty: none did
  int all_ranks = 0;                    // ranks that it takes, servers included
  int ranks() const { return all_ranks; }
  int finished() const { return row.attempts; }
  int tried() const { return static_cast<int>(repetitions.size()); }
  // Whether every repetition reached the target.
  bool to_target() const { return reached > 0 && reached == tried(); }
  // Counts the parts beyond one program that sums gradients: servers, a split, a codec, a strategy.
  int parts_beyond_plain() const;
  // "reached 2 of 5, 3 diverged"; without a goal "2 of 5 finished, 3 diverged"; "" if nothing went wrong.
  std::string outcome_text(bool has_goal) const;
  // Median time of a run to the target if the study has a goal, else of a whole run.
  double wall_s(bool has_goal) const { return has_goal ? (to_target() ? seconds.median : kUnknown) : run_s; }
};

inline bool has_price(const CostConfig& cost) { return cost.node_hour > 0 || cost.rank_hour > 0; }
// Returns the price of `seconds` on that many hosts and ranks; unknown if neither has a price.
double price_of(const CostConfig& cost, double hosts, double ranks, double seconds);

struct Evidence {
  GoalConfig goal;
  CostConfig cost;
  StudyRules rules = {};
  std::vector<Setting> settings;  // in the order of environments, then ranks, then labels
  std::vector<ControlRate> controls = {};
  std::vector<std::string> environments{};  // in the order of first appearance; a single "" if there is one
  // One per environment: the setting on one rank (else on the fewest ranks) that learns best, see baseline.hpp; -1 if
  // no run finished there.
  std::vector<int> baselines = {};
  int baseline = -1;  // the baseline of the first environment that has one; -1: none
  bool has_goal() const { return goal.metric != GoalMetric::none; }
  const Setting& best_single() const { return settings[static_cast<std::size_t>(baseline)]; }
  bool single_is_one() const { return baseline >= 0 && best_single().ranks() == 1; }
  // The baseline of the setting's environment.
  int baseline_of(const Setting& setting) const;
  // Host-hours and price of a run (to the target if there is a goal). Unknown if it did not reach the target, or if an
  // hour has no price.
  double node_hours(const Setting& setting) const { return node_hours(setting, setting.wall_s(has_goal())); }
  double price(const Setting& setting) const { return price(setting, setting.wall_s(has_goal())); }
  // Host-hours and price of `seconds` on the setting's hosts.
  double node_hours(const Setting& setting, double seconds) const;
  double price(const Setting& setting, double seconds) const;

  // The point along the curves, in samples or in seconds, at which settings are compared. A setting ends where the
  // shortest of its repetitions does; the point is the first such end at which more than half of the evaluated settings
  // have a figure. Unknown if there is none.
  double common_point(double Evaluation::*axis, const std::string& environment) const;
  // The figure of final_figure at `where` along the axis: linear between two evaluations, unknown before the first.
  // After the last evaluation it is unknown on the samples axis and keeps its last value on the seconds axis.
  Spread figure_at(const Setting& setting, double Evaluation::*axis, double where) const;
  double figure_at(const Repetition& repetition, double Evaluation::*axis, double where) const;
  double final_figure(const Repetition& repetition) const;
  // Seconds from the start of the run until `samples` were trained, interpolated; median over the repetitions.
  double seconds_after(const Setting& setting, double samples) const;
  static double seconds_after(const Repetition& repetition, double samples);
};

// The figure that the curves show and by which settings are compared: the goal's metric, else accuracy or test loss.
// Requires a setting.
GoalMetric shown_metric(const Evidence& evidence);

// Reads metrics.jsonl and wire.json of each run.
Evidence make_evidence(const std::vector<LabelledRun>& runs, const GoalConfig& goal, const CostConfig& cost,
                       const StudyRules& rules = {}, const std::vector<ControlRate>& controls = {});

// Computes everything that follows from the repetitions and rows of the settings and from goal, cost, rules and
// controls: spreads, counts, baselines, speed-ups, loss budgets. Evidence that was read back from a file needs it too.
void complete(Evidence& evidence);

}  // namespace echelon::inline report
