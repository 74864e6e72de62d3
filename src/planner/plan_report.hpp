// Forecasts as tables for a terminal, Markdown, CSV and JSON. Pure functions of forecasts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "planner/mesh_models.hpp"
#include "planner/prediction.hpp"

namespace echelon::inline planner {

// What was measured, and what is predicted for the same config and ranks.
struct MeasuredPoint {
  std::string folder, title;
  int replicas = 0;
  double measured_s = 0;  // measured_period_s (step_model.hpp)
  ForecastRow predicted;
  bool calibrates = false;  // the run that the step was measured in
};

struct PlanReport {
  std::vector<std::string> facts;    // lines: model, step, network, memory
  Forecast main;                     // of the config as it is
  std::vector<Forecast> variants;    // other strategies, algorithms, codecs
  std::vector<MeshForecast> meshes;  // of several numbers of ranks, in their order
  std::vector<MeasuredPoint> points;
  CostConfig cost;  // of an hour of a host
  std::vector<std::string> notes;
};

enum class PlanFormat : unsigned char { text, markdown };
std::string plan_text(const PlanReport& report, PlanFormat format);
// One row a forecast and number of replicas; the main one first. Without meshes.
std::string plan_csv(const PlanReport& report);
nlohmann::ordered_json plan_json(const PlanReport& report);
// Step time over replicas, with its range, and measured points of the same exchanges: an SVG. "" for one
// number of replicas without points.
std::string plan_svg(const PlanReport& report);

}  // namespace echelon::inline planner
