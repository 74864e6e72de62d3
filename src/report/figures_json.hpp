// Figures to JSON and back, by the list of figures_list.hpp. Unknown and infinite numbers are null, or without a field
// where the list specifies so; on reading, fields that are null or missing keep their defaults and unknown fields are
// ignored.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/figures.hpp"

namespace echelon::inline report {

nlohmann::ordered_json to_json(const StepFigures& figures);
nlohmann::ordered_json to_json(const EpochFigures& figures);
nlohmann::ordered_json to_json(const CheckpointFigures& figures);
nlohmann::ordered_json to_json(const RunFigures& figures);

// Throw nlohmann::json::exception where a field has another type; `to` is then partly filled.
void take_figures(const nlohmann::json& from, StepFigures& to);
void take_figures(const nlohmann::json& from, EpochFigures& to);
void take_figures(const nlohmann::json& from, RunFigures& to);

}  // namespace echelon::inline report
