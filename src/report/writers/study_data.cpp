// SPDX-License-Identifier: Apache-2.0
#include "report/writers/study_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "report/writers/csv_parts.hpp"
#include "report/writers/study.hpp"
#include "report/writers/study_numbers.hpp"

namespace echelon::inline report {
namespace {

// The row as pairs of heading and cell. Each heading occurs once.
std::vector<std::pair<std::string, std::string>> setting_cells(const Evidence& evidence, const Setting& s,
                                                               const StudyVerdict& verdict) {
  std::vector<std::pair<std::string, std::string>> cells;
  std::set<std::string> names;
  const auto add = [&](const std::string& name, std::string cell) {
    if (names.insert(name).second) cells.emplace_back(name, std::move(cell));
  };
  const auto truth = [](bool value) { return value ? "true" : "false"; };
  const auto index = &s - evidence.settings.data();
  add("setting", name_of(s));
  add("what", what_of(s));
  add("environment", s.environment);
  add("all_ranks", fmt::format("{}", s.ranks()));
  add("baseline", truth(index == evidence.baseline_of(s)));
  const auto recommends = [&](const EnvironmentVerdict& e) { return index == e.recommended; };
  add("recommended", truth(std::any_of(verdict.environments.begin(), verdict.environments.end(), recommends)));
  add("runs", fmt::format("{}", s.tried()));
  add("finished", fmt::format("{}", s.finished()));
  add("diverged", fmt::format("{}", s.diverged));
  add("failed", fmt::format("{}", s.failed));
  add("reached", fmt::format("{}", s.reached));
  add("to_target", truth(s.to_target()));
  add("figure", goal_metric_name(shown_metric(evidence)));
  each_spread(s, [&](const std::string& name, const Spread& spread) {
    add(name, number_cell(spread.median));
    add(name + "_low", number_cell(spread.low));
    add(name + "_high", number_cell(spread.high));
  });
  add("speed_up", number_cell(s.row.speed_up));
  add("efficiency", number_cell(s.row.efficiency));
  each_number(evidence, s, [&](const char* name, double value) { add(name, number_cell(value)); });
  add("currency", evidence.cost.currency);
  for (const BudgetPart& part : kBudgetParts)
    add("loss_budget_" + key_of(part), s.budget.known() ? number_cell(s.budget.*part.share) : "");
  for (auto& [name, cell] : row_cells(s.row)) add(name, std::move(cell));
  add("attempt", s.repetitions.empty() ? "" : s.repetitions.front().attempt);
  return cells;
}

}  // namespace

std::string study_csv(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source) {
  std::vector<std::string> header;
  if (!evidence.settings.empty())
    for (const auto& [name, cell] : setting_cells(evidence, evidence.settings.front(), verdict)) header.push_back(name);
  header.insert(header.end(), {"report_date", "report_commit"});
  Table table(header);
  for (const Setting& s : evidence.settings) {
    std::vector<std::string> cells;
    for (auto& [name, cell] : setting_cells(evidence, s, verdict)) cells.push_back(std::move(cell));
    cells.insert(cells.end(), {source.date, source.commit});
    table.row(std::move(cells));
  }
  return table.csv();
}

}  // namespace echelon::inline report
