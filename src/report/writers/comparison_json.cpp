// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "report/writers/comparison.hpp"
#include "report/writers/json_parts.hpp"

namespace echelon::inline report {
namespace {

using nlohmann::ordered_json;

const char* word(Change verdict) {
  constexpr const char* kWords[] = {"none", "better", "worse", "unknown"};
  return kWords[static_cast<std::size_t>(verdict)];
}

ordered_json figure_json(const ComparedFigure& figure) {
  return {{"figure", figure.name},
          {"unit", figure.unit},
          {"group", kFigureGroups[static_cast<std::size_t>(figure.group)]},
          {"base", number_json(figure.base)},
          {"new", number_json(figure.fresh)},
          {"change", number_json(figure.change)},
          {"low", number_json(figure.low)},
          {"high", number_json(figure.high)},
          {"p", number_json(figure.p)},
          {"attempts_needed", number_json(figure.attempts_needed)},
          {"verdict", word(figure.verdict)},
          {"note", figure.note}};
}

}  // namespace

std::string comparison_json(const Comparison& comparison) {
  ordered_json tolerance = ordered_json::object();
  for (std::size_t i = 0; i < kFigureGroups.size(); ++i) tolerance[kFigureGroups[i]] = comparison.settings.tolerance[i];
  ordered_json out = {{"format", "echelon-comparison"},
                      {"version", 1},
                      {"worse", comparison.count(Change::worse)},
                      {"better", comparison.count(Change::better)},
                      {"significance", comparison.settings.significance},
                      {"tolerance", tolerance},
                      {"runs", ordered_json::array()},
                      {"notes", comparison.notes}};
  for (const ComparedRuns& runs : comparison.runs) {
    ordered_json one = {{"title", runs.title},
                        {"base_attempts", runs.base_attempts},
                        {"new_attempts", runs.fresh_attempts},
                        {"allowed", runs.allowed},
                        {"figures", ordered_json::array()}};
    for (const ComparedFigure& figure : runs.figures) one["figures"].push_back(figure_json(figure));
    out["runs"].push_back(std::move(one));
  }
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace echelon::inline report
