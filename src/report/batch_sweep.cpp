// SPDX-License-Identifier: Apache-2.0
#include "report/batch_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace echelon::inline report {
namespace {

constexpr double kUsefulWithin = 2;
constexpr const char* kTuned = "as tuned";  // a row that belongs to every rule

BatchSweepRow row_of(const BatchSweepCell& cell, const GoalConfig& goal) {
  BatchSweepRow row{.cell = cell, .run = {}, .reach = {}};
  if (cell.attempt.empty()) return row;
  row.run = read_run(cell.attempt);
  const std::vector<Evaluation> evaluations = evaluations_of(*row.run);
  for (const Evaluation& now : evaluations) {
    const double figure = goal_figure(goal.metric, test_figures(now));
    row.best = goal_rises(goal.metric) ? std::fmax(row.best, figure) : std::fmin(row.best, figure);
  }
  row.reach = reach_of(evaluations, goal);
  return row;
}

double fewest_samples(const BatchSweep& sweep) {
  double fewest = kUnknown;
  for (const BatchSweepRow& row : sweep.rows) fewest = std::fmin(fewest, row.reach.samples);
  return fewest;
}

UsefulRange useful_of(const BatchSweep& sweep, const std::string& rule) {
  const double fewest = fewest_samples(sweep);
  UsefulRange useful{.rule = rule};
  for (const BatchSweepRow& row : sweep.rows) {
    if (row.cell.rule != rule && row.cell.rule != kTuned) continue;
    if (!row.reached() || row.reach.samples > kUsefulWithin * fewest) {
      if (useful.from > 0) break;
      continue;
    }
    if (useful.from == 0) useful.from = row.cell.batch;
    useful.to = row.cell.batch;
  }
  return useful;
}

std::string figure_text(const GoalConfig& goal, double figure) {
  if (!std::isfinite(figure)) return "-";
  return goal_rises(goal.metric) ? fmt::format("{:.2f} %", 100 * figure) : fmt::format("{:.4g}", figure);
}

Table table_of(const BatchSweep& sweep) {
  const bool rules =
      std::any_of(sweep.rows.begin(), sweep.rows.end(), [](const auto& r) { return !r.cell.rule.empty(); });
  std::vector<std::string> header = {"batch"};
  if (rules) header.emplace_back("learning rate");
  header.insert(header.end(), {"samples/s", "epochs", "best " + goal_metric_name(sweep.goal.metric),
                               "samples to " + figure_text(sweep.goal, sweep.goal.target), "time to goal"});
  Table table(header);
  for (const BatchSweepRow& row : sweep.rows) {
    std::vector<std::string> cells = {count_text(row.cell.batch)};
    if (rules) cells.push_back(row.cell.rule);
    const bool ran = row.run.has_value();
    cells.insert(cells.end(), {ran ? rate_text(row.run->samples_per_s.median) : "-",
                               ran ? count_text(row.run->epochs) : "-", figure_text(sweep.goal, row.best),
                               row.reached() ? count_text(std::llround(row.reach.samples))
                               : ran         ? "not reached"
                                             : row.cell.state,
                               row.reached() ? seconds_text(row.reach.seconds) : "-"});
    table.row(std::move(cells));
  }
  return table;
}

std::string useful_text(const BatchSweep& sweep) {
  if (!std::isfinite(fewest_samples(sweep))) return "no batch reached the target\n";
  std::string out;
  for (const UsefulRange& useful : sweep.useful) {
    const std::string what = useful.rule.empty() ? "useful" : fmt::format("useful with {}", useful.rule);
    if (useful.from == 0)
      out += fmt::format("{}: none\n", what);
    else if (useful.from == useful.to)
      out += fmt::format("{}: only {} (reaches the target within {:g}x the fewest samples)\n", what, useful.from,
                         kUsefulWithin);
    else
      out += fmt::format("{}: {} to {} (reach the target within {:g}x the fewest samples)\n", what, useful.from,
                         useful.to, kUsefulWithin);
  }
  return out;
}

}  // namespace

BatchSweep make_batch_sweep(const std::vector<BatchSweepCell>& cells, const GoalConfig& goal) {
  BatchSweep sweep{.goal = goal, .rows = {}, .useful = {}};
  for (const BatchSweepCell& cell : cells) sweep.rows.push_back(row_of(cell, goal));
  std::vector<std::string> rules;
  for (const BatchSweepCell& cell : cells)
    if (cell.rule != kTuned && std::find(rules.begin(), rules.end(), cell.rule) == rules.end())
      rules.push_back(cell.rule);
  for (const std::string& rule : rules) sweep.useful.push_back(useful_of(sweep, rule));
  return sweep;
}

std::string batch_sweep_text(const BatchSweep& sweep) { return table_of(sweep).text() + useful_text(sweep); }

std::string batch_sweep_markdown(const BatchSweep& sweep) {
  std::string out = "# Batch sweep\n\n" + table_of(sweep).markdown() + "\n" + useful_text(sweep) + "\n";
  for (const BatchSweepRow& row : sweep.rows)
    if (row.run)
      out +=
          fmt::format("- batch {}{}{}: `{}`, commit {}, {}\n", row.cell.batch, row.cell.rule.empty() ? "" : ", ",
                      row.cell.rule, row.run->provenance.command_line, row.run->provenance.git_hash, row.run->folder);
  return out;
}

}  // namespace echelon::inline report
