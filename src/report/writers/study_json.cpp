// SPDX-License-Identifier: Apache-2.0
// study.json: everything from which the verdict follows, by repetition.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/figures_json.hpp"
#include "report/statistics/looks.hpp"
#include "report/statistics/paired.hpp"
#include "report/writers/json_parts.hpp"
#include "report/writers/study.hpp"
#include "report/writers/study_data.hpp"
#include "report/writers/study_numbers.hpp"

namespace echelon::inline report {
namespace {

using nlohmann::ordered_json;

ordered_json or_null(double value) { return value > 0 ? ordered_json(value) : ordered_json(nullptr); }
ordered_json index_or_null(int index) { return index >= 0 ? ordered_json(index) : ordered_json(nullptr); }

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

ordered_json effect_json(const Effect& effect) {
  if (effect.pairs == 0) return nullptr;
  return {{"value", number_json(effect.value)},
          {"low", number_json(effect.low)},
          {"high", number_json(effect.high)},
          {"of", effect.ratio ? "ratio" : "difference"},
          {"pairs", effect.pairs}};
}

ordered_json answer_json(const EnvironmentVerdict& e) {
  ordered_json worse = ordered_json::array();
  for (const PricedGain& gain : e.faster_but_worse)
    worse.push_back({{"setting", gain.setting},
                     {"gain", effect_json(gain.gain)},
                     {"loss", effect_json(gain.loss)},
                     {"text", gain.text}});
  return {{"environment", e.environment},
          {"answer", answer_name(e.answer)},
          {"headline", e.headline},
          {"baseline", index_or_null(e.baseline)},
          {"recommended", index_or_null(e.recommended)},
          {"gain", effect_json(e.gain)},
          {"cost", effect_json(e.cost)},
          {"ties", e.ties},
          {"margin", number_json(e.margin)},
          {"repetitions", e.repetitions},
          {"needed", e.needed},
          {"faster_but_worse", worse}};
}

ordered_json row_json(const GoalRow& row) {
  return {{"environment", row.environment},
          {"want", row.want},
          {"setting", index_or_null(row.setting)},
          {"value", row.value},
          {"effect", effect_json(row.effect)},
          {"ties", row.ties},
          {"text", row.text}};
}

ordered_json test_json(const TestRecord& test) {
  return {{"environment", test.environment},
          {"question", test.question},
          {"measure", test.measure},
          {"setting", test.setting},
          {"against", test.against},
          {"method", test.method},
          {"threshold", test.threshold},
          {"threshold_error", test.threshold_error},
          {"effect", effect_json(test.effect)},
          {"p", number_json(test.p)},
          {"sign_flips_p", number_json(test.flips_p)},
          {"level", number_json(test.level)},
          {"shown", test.shown}};
}

template <class T, class Write>
ordered_json list_json(const std::vector<T>& values, const Write& write) {
  ordered_json out = ordered_json::array();
  for (const T& value : values) out.push_back(write(value));
  return out;
}

ordered_json verdict_json(const StudyVerdict& verdict) {
  return {{"answer", answer_name(verdict.answer)},
          {"headline", verdict.headline},
          {"recommended", index_or_null(verdict.recommended)},
          {"environments", list_json(verdict.environments, answer_json)},
          {"rows", list_json(verdict.rows, row_json)},
          {"limits", verdict.limits},
          {"caveats", verdict.caveats},
          {"goals", list_json(verdict.goals,
                              [](const GoalLine& goal) {
                                return ordered_json{{"met", goal.met}, {"text", goal.text}};
                              })},
          {"met", verdict.met()},
          {"tests", list_json(verdict.tests, test_json)}};
}

// Writes steps, samples, .. as lists of equal length, which halves the size of the file.
ordered_json curve_json(const std::vector<Evaluation>& curve) {
  ordered_json out = ordered_json::object();
  for (const CurveNumber& number : kCurveNumbers) {
    ordered_json& list = out[number.name] = ordered_json::array();
    for (const Evaluation& e : curve) list.push_back(number_json(e.*number.value));
  }
  return out;
}

ordered_json repetition_json(const Repetition& r) {
  ordered_json out = {{"repeat", r.repeat},
                      {"seed", r.seed},
                      {"outcome", outcome_name(r.outcome)},
                      {"code", r.code},
                      {"attempt", r.attempt}};
  for (const RepetitionNumber& number : kRepetitionNumbers) out[number.name] = number_json(r.*number.value);
  out["curve"] = curve_json(r.curve);
  return out;
}

ordered_json wire_json(const WireBytes& wire) {
  if (wire.empty()) return nullptr;
  ordered_json sent = ordered_json::array();
  for (std::size_t from = 0; from < wire.size(); ++from)
    for (std::size_t to = 0; to < wire.size(); ++to)
      if (wire[from][to] > 0) sent.push_back({from, to, wire[from][to]});
  return {{"ranks", wire.size()}, {"bytes_per_step", sent}};
}

ordered_json budget_json(const LossBudget& budget) {
  if (!budget.known()) return nullptr;
  ordered_json out;
  for (const BudgetPart& part : kBudgetParts) out[key_of(part)] = number_json(budget.*part.share);
  return out;
}

ordered_json setting_json(const Evidence& evidence, const Setting& s) {
  ordered_json out = {{"setting", name_of(s)},    {"label", s.label},          {"environment", s.environment},
                      {"what", what_of(s)},       {"all_ranks", s.ranks()},    {"runs", s.tried()},
                      {"finished", s.finished()}, {"diverged", s.diverged},    {"failed", s.failed},
                      {"reached", s.reached},     {"to_target", s.to_target()}};
  each_spread(s, [&](const char* name, const Spread& spread) { out[name] = spread_json(spread); });
  each_number(evidence, s, [&](const char* name, double value) { out[name] = number_json(value); });
  out["speed_up"] = number_json(s.row.speed_up);
  out["efficiency"] = number_json(s.row.efficiency);
  out["mesh_text"] = s.row.mesh_text;
  out["coded_as"] = s.row.codec_text;
  out["batch_text"] = s.row.batch_text;
  out["hash"] = s.row.hash;
  out["loss_budget"] = budget_json(s.budget);
  out["figures"] = to_json(static_cast<const RunFigures&>(s.row));
  out["repetitions"] = list_json(s.repetitions, repetition_json);
  out["wire"] = wire_json(s.wire);
  return out;
}

}  // namespace

std::string study_json(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source) {
  const ordered_json out = {
      {"format", "echelon-study"},
      {"version", kStudyVersion},
      {"name", source.name},
      {"date", source.date},
      {"command", source.command},
      {"echelon", {{"version", source.version}, {"commit", source.commit}}},
      {"verdict", verdict_json(verdict)},
      {"rules",
       {{"margin", evidence.rules.margin},
        {"least_gain", evidence.rules.least_gain},
        {"error", kStudyError},
        {"confidence", kConfidence},
        {"looks", kLooks}}},
      {"goal", goal_json(evidence)},
      {"cost",
       {{"node_hour", or_null(evidence.cost.node_hour)},
        {"rank_hour", or_null(evidence.cost.rank_hour)},
        {"currency", evidence.cost.currency}}},
      {"controls", list_json(evidence.controls,
                             [](const ControlRate& c) {
                               return ordered_json{{"environment", c.environment},
                                                   {"repeat", c.repeat},
                                                   {"samples_per_s", number_json(c.samples_per_s)}};
                             })},
      {"baseline", index_or_null(evidence.baseline)},
      {"figure",
       evidence.settings.empty() ? ordered_json(nullptr) : ordered_json(goal_metric_name(shown_metric(evidence)))},
      {"settings", list_json(evidence.settings, [&](const Setting& s) { return setting_json(evidence, s); })}};
  return out.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace echelon::inline report
