// SPDX-License-Identifier: Apache-2.0
// Forecasts as tables for a terminal, Markdown, CSV and JSON. Pure functions of forecasts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "planner/mesh_models.hpp"
#include "planner/prediction.hpp"

namespace echelon::inline planner {

// The measured step of a run, and the prediction for the same config and ranks.
struct MeasuredPoint {
  std::string folder, title;
  int replicas = 0;
  double measured_s = 0;  // measured_period_s (step_model.hpp)
  ForecastRow predicted;
  bool calibrates = false;  // the step model was measured in this run
};

struct PlanReport {
  std::vector<std::string> facts;    // lines: model, step, network, memory
  Forecast main;                     // the config as it is
  std::vector<Forecast> variants;    // other strategies, algorithms, codecs
  std::vector<MeshForecast> meshes;  // for several numbers of ranks, in their order
  std::vector<MeasuredPoint> points;
  CostConfig cost;  // per hour of a host
  std::vector<std::string> notes;
};

enum class PlanFormat : unsigned char { text, markdown };
std::string plan_text(const PlanReport& report, PlanFormat format);
// One row per forecast and number of replicas, the main forecast first, without meshes.
std::string plan_csv(const PlanReport& report);
nlohmann::ordered_json plan_json(const PlanReport& report);
// An SVG of the step time over replicas with its range, and measured points of the same exchanges. Returns "" if there
// is only one number of replicas and no measured point.
std::string plan_svg(const PlanReport& report);

}  // namespace echelon::inline planner
