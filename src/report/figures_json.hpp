// SPDX-License-Identifier: Apache-2.0
// Converts figures to JSON and back, following the list of figures_list.hpp. Unknown and infinite numbers become null,
// or the field is left out where the list says so. On reading, fields that are null or missing keep their defaults, and
// unknown fields are ignored.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/figures.hpp"

namespace echelon::inline report {

nlohmann::ordered_json to_json(const StepFigures& figures);
nlohmann::ordered_json to_json(const EpochFigures& figures);
nlohmann::ordered_json to_json(const CheckpointFigures& figures);
nlohmann::ordered_json to_json(const RunFigures& figures);

// Throw nlohmann::json::exception if a field has the wrong type; `to` is then partly filled.
void take_figures(const nlohmann::json& from, StepFigures& to);
void take_figures(const nlohmann::json& from, EpochFigures& to);
void take_figures(const nlohmann::json& from, RunFigures& to);

}  // namespace echelon::inline report
