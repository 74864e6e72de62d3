// Figures to JSON and back, by the list of figures_list.hpp. Numbers that are not known are null, or left out where the
// list has it so; what a file lacks keeps its default.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/figures.hpp"

namespace echelon::inline report {

nlohmann::ordered_json to_json(const StepFigures& figures);
nlohmann::ordered_json to_json(const EpochFigures& figures);
nlohmann::ordered_json to_json(const RunFigures& figures);

// nlohmann::json::exception where a field has another type.
void take_figures(const nlohmann::json& from, StepFigures& to);
void take_figures(const nlohmann::json& from, EpochFigures& to);
void take_figures(const nlohmann::json& from, RunFigures& to);

}  // namespace echelon::inline report
