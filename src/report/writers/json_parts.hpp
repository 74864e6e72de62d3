// SPDX-License-Identifier: Apache-2.0
// Shared by the writers of JSON reports.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/scaling.hpp"

namespace echelon::inline report {

nlohmann::ordered_json number_json(double value);          // null if unknown or infinite
nlohmann::ordered_json spread_json(const Spread& spread);  // median, low, high
// Returns the row's figures as in summary.json, and the figures that only a row has: rate, speed-up, efficiency,
// percent.
nlohmann::ordered_json row_json(const ScalingRow& row);

}  // namespace echelon::inline report
