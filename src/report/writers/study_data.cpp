#include "report/writers/study_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "report/wire_table.hpp"
#include "report/writers/csv_parts.hpp"
#include "report/writers/json_parts.hpp"
#include "report/writers/study.hpp"

namespace echelon::inline report {
namespace {

using nlohmann::ordered_json;

// The single numbers that only a setting of a study has.
template <class Add>
void each_number(const Evidence& evidence, const Setting& s, const Add& add) {
  const RankCompute compute = compute_of(s.row);
  add("seconds_of_run", s.run_s);
  add("node_hours", evidence.node_hours(s));
  add("price", evidence.price(s));
  add("exchange_exposed_share", exposed_share(s.row));
  add("exchange_hidden_share", s.row.hidden_share());
  add("forward_flops_per_s", compute.forward_flops_per_s);
  add("backward_flops_per_s", compute.backward_flops_per_s);
  add("flops_per_weight_and_step", compute.flops_per_weight_and_step);
  add("card_peak_over_mean", compute.card_peak_over_mean);
}

template <class Add>
void each_spread(const Setting& s, const Add& add) {
  add("samples_per_s", s.row.rate);
  add("test_accuracy", s.row.accuracy);
  add("final_figure", s.final_figure);
  add("samples_to_target", s.samples);
  add("seconds_to_target", s.seconds);
}

// "micro_batch", "start_up": as keys.
std::string key_of(const BudgetPart& part) { return replaced(part.name, "-", "_"); }

ordered_json or_null(double value) { return value > 0 ? ordered_json(value) : ordered_json(nullptr); }

ordered_json goal_json(const Evidence& evidence) {
  const GoalConfig& goal = evidence.goal;
  const bool has = evidence.has_goal();
  return {{"metric", has ? ordered_json(goal_metric_name(goal.metric)) : nullptr},
          {"target", has ? ordered_json(goal.target) : nullptr},
          {"most_samples", or_null(goal.most_samples)},
          {"least_efficiency", or_null(goal.least_efficiency)},
          {"greatest_cost", or_null(goal.greatest_cost)},
          {"deadline_h", or_null(goal.deadline_h)}};
}

ordered_json verdict_json(const StudyVerdict& verdict) {
  ordered_json goals = ordered_json::array();
  for (const GoalLine& goal : verdict.goals) goals.push_back({{"met", goal.met}, {"text", goal.text}});
  return {{"lines", verdict.lines},
          {"goals", goals},
          {"met", verdict.met()},
          {"recommended", verdict.recommended >= 0 ? ordered_json(verdict.recommended) : nullptr}};
}

ordered_json budget_json(const LossBudget& budget) {
  if (!budget.known()) return nullptr;
  ordered_json out;
  for (const BudgetPart& part : kBudgetParts) out[key_of(part)] = number_json(budget.*part.share);
  return out;
}

ordered_json setting_json(const Evidence& evidence, const Setting& s) {
  ordered_json out = {{"setting", name_of(s)},  {"what", what_of(s)},   {"attempt", s.attempt},
                      {"all_ranks", s.ranks()}, {"reached", s.reached}, {"to_target", s.to_target()}};
  each_number(evidence, s, [&](const char* name, double value) { out[name] = number_json(value); });
  out["loss_budget"] = budget_json(s.budget);
  out["curve"] = ordered_json::array();
  for (const Evaluation& e : s.curve)
    out["curve"].push_back({{"step", number_json(e.step)},
                            {"samples", number_json(e.samples)},
                            {"seconds", number_json(e.seconds)},
                            {"test_loss", number_json(e.test_loss)},
                            {"test_accuracy", number_json(e.test_accuracy)}});
  out.update(row_json(s.row));
  each_spread(s, [&](const char* name, const Spread& spread) { out[name] = spread_json(spread); });
  return out;
}

ordered_json wire_json(const Evidence& evidence, const StudyVerdict& verdict) {
  if (evidence.settings.empty()) return nullptr;
  const Setting& shown = shown_setting(evidence, verdict);
  const WireBytes bytes = read_wire(shown.attempt);
  if (bytes.empty()) return nullptr;
  return {{"setting", &shown - evidence.settings.data()}, {"bytes_per_step", bytes}};
}

// The row as pairs of heading and cell; each heading once.
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
  add("all_ranks", fmt::format("{}", s.ranks()));
  add("baseline", truth(index == evidence.baseline));
  add("recommended", truth(index == verdict.recommended));
  add("runs", fmt::format("{}", s.row.attempts));
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
  add("attempt", s.attempt);
  return cells;
}

}  // namespace

std::string study_json(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source) {
  ordered_json out = {
      {"format", "echelon-study"},
      {"version", 1},
      {"name", source.name},
      {"date", source.date},
      {"command", source.command},
      {"echelon", {{"version", source.version}, {"commit", source.commit}}},
      {"verdict", verdict_json(verdict)},
      {"goal", goal_json(evidence)},
      {"cost", {{"node_hour", or_null(evidence.cost.node_hour)}, {"currency", evidence.cost.currency}}},
      {"baseline", evidence.baseline >= 0 ? ordered_json(evidence.baseline) : nullptr},
      {"figure", evidence.baseline >= 0 ? ordered_json(goal_metric_name(shown_metric(evidence))) : nullptr},
      {"settings", ordered_json::array()},
      {"wire", wire_json(evidence, verdict)}};
  for (const Setting& s : evidence.settings) out["settings"].push_back(setting_json(evidence, s));
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

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
