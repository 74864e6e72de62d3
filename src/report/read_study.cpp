// SPDX-License-Identifier: Apache-2.0
#include "report/read_study.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "report/figures_json.hpp"
#include "report/writers/study_data.hpp"
#include "report/writers/study_numbers.hpp"

namespace echelon::inline report {
namespace {

using nlohmann::json;

double number(const json& value) { return value.is_null() ? kUnknown : value.get<double>(); }
double or_zero(const json& value) { return value.is_null() ? 0 : value.get<double>(); }

GoalConfig goal_of(const json& from) {
  GoalConfig goal;
  if (!from.at("metric").is_null()) {
    for (const GoalMetric metric :
         {GoalMetric::test_accuracy, GoalMetric::test_loss, GoalMetric::test_perplexity, GoalMetric::test_mean_iou,
          GoalMetric::test_macro_f1, GoalMetric::test_auc, GoalMetric::test_mae, GoalMetric::test_r2})
      if (from.at("metric") == goal_metric_name(metric)) goal.metric = metric;
    goal.target = from.at("target");
  }
  goal.most_samples = or_zero(from.at("most_samples"));
  goal.least_efficiency = or_zero(from.at("least_efficiency"));
  goal.greatest_cost = or_zero(from.at("greatest_cost"));
  goal.deadline_h = or_zero(from.at("deadline_h"));
  return goal;
}

std::vector<Evaluation> curve_of(const json& from) {
  std::vector<Evaluation> curve(from.at(kCurveNumbers.front().name).size());
  for (const CurveNumber& name : kCurveNumbers)
    for (std::size_t i = 0; i < curve.size(); ++i) curve[i].*name.value = number(from.at(name.name).at(i));
  return curve;
}

Repetition repetition_of(const json& from) {
  Repetition out{.repeat = from.at("repeat"),
                 .seed = from.at("seed"),
                 .outcome = outcome_of(from.at("outcome")),
                 .code = from.at("code"),
                 .attempt = from.at("attempt")};
  for (const RepetitionNumber& name : kRepetitionNumbers) out.*name.value = number(from.at(name.name));
  out.curve = curve_of(from.at("curve"));
  return out;
}

WireBytes wire_of(const json& from) {
  if (from.is_null()) return {};
  const std::size_t ranks = from.at("ranks");
  WireBytes wire(ranks, std::vector<double>(ranks, 0));
  for (const json& sent : from.at("bytes_per_step")) wire.at(sent.at(0)).at(sent.at(1)) = sent.at(2);
  return wire;
}

Setting setting_of(const json& from) {
  Setting out;
  out.label = from.at("label");
  out.environment = from.at("environment");
  out.all_ranks = from.at("all_ranks");
  take_figures(from.at("figures"), out.row);
  out.row.mesh_text = from.at("mesh_text");
  out.row.codec_text = from.at("coded_as");
  out.row.batch_text = from.at("batch_text");
  out.row.hash = from.at("hash");
  out.row.percent = time_percent(out.row.time_split_s);
  out.row.has_split = out.row.time_split_s.total_s > 0;
  for (const json& repetition : from.at("repetitions")) out.repetitions.push_back(repetition_of(repetition));
  out.wire = wire_of(from.at("wire"));
  return out;
}

StudyFile study_of(const json& from) {
  StudyFile out;
  Evidence& evidence = out.evidence;
  evidence.goal = goal_of(from.at("goal"));
  evidence.cost = {.node_hour = or_zero(from.at("cost").at("node_hour")),
                   .rank_hour = or_zero(from.at("cost").at("rank_hour")),
                   .currency = from.at("cost").at("currency")};
  evidence.rules = {.margin = from.at("rules").at("margin"), .least_gain = from.at("rules").at("least_gain")};
  for (const json& control : from.at("controls"))
    evidence.controls.push_back({.environment = control.at("environment"),
                                 .repeat = control.at("repeat"),
                                 .samples_per_s = number(control.at("samples_per_s"))});
  for (const json& setting : from.at("settings")) evidence.settings.push_back(setting_of(setting));
  complete(evidence);
  out.source = {from.at("name"), from.at("command"), from.at("date"), from.at("echelon").at("version"),
                from.at("echelon").at("commit")};
  return out;
}

}  // namespace

bool is_study(const std::string& path) {
  if (!path.ends_with(".json") || !std::filesystem::is_regular_file(path)) return false;
  const json from = json::parse(read_file_whole(path), nullptr, false);
  return from.is_object() && from.value("format", "") == "echelon-study";
}

StudyFile read_study(const std::string& path) {
  try {
    const json from = json::parse(read_file_whole(path));
    const int version = from.value("version", 0);
    if (from.value("format", "") != "echelon-study" || version != kStudyVersion)
      throw DataError(
          fmt::format("{}: is not a study.json of version {} (it has version {}): to write it again, run `echelon "
                      "scale STUDY --report` where its cells are",
                      path, kStudyVersion, version));
    return study_of(from);
  } catch (const json::exception& error) {
    throw DataError(fmt::format("{}: is not a complete study: {}", path, error.what()));
  } catch (const ConfigError& error) {
    throw DataError(fmt::format("{}: {}", path, error.what()));
  } catch (const std::out_of_range&) {
    throw DataError(fmt::format("{}: names ranks that its wire matrix does not have", path));
  }
}

}  // namespace echelon::inline report
