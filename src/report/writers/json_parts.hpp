// What the JSON files of reports have in common.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/scaling.hpp"

namespace echelon::inline report {

nlohmann::ordered_json number_json(double value);          // null where it is unknown or infinite
nlohmann::ordered_json spread_json(const Spread& spread);  // median, low, high
// The figures of the row as in summary.json, and what only a row of a study has: rate, speed-up, efficiency, percent.
nlohmann::ordered_json row_json(const ScalingRow& row);

}  // namespace echelon::inline report
