// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "planner/plan_report.hpp"
#include "report/writers/plot.hpp"

namespace echelon::inline planner {

std::string plan_svg(const PlanReport& report) {
  if (report.main.rows.size() < 2 && report.points.empty()) return {};
  LinePlot plot{.title = "Step of a replica", .x_label = "replicas", .y_label = "ms", .lines = {}, .log2_x = true};
  PlotLine predicted{.name = "predicted: " + report.main.title, .points = {}};
  for (const ForecastRow& row : report.main.rows)
    predicted.points.push_back({.x = static_cast<double>(row.replicas),
                                .y = 1e3 * row.step_s,
                                .low = 1e3 * row.low_s,
                                .high = 1e3 * row.high_s});
  plot.lines.push_back(std::move(predicted));
  // The lines of measured points, and of the predictions for them, by exchange.
  std::map<std::string, std::pair<PlotLine, PlotLine>> by_title;
  for (const MeasuredPoint& point : report.points) {
    auto& [measured, foreseen] = by_title[point.title];
    measured.name = "measured: " + point.title, foreseen.name = "predicted: " + point.title;
    const double k = point.replicas, measured_ms = 1e3 * point.measured_s, foreseen_ms = 1e3 * point.predicted.step_s;
    measured.points.push_back({.x = k, .y = measured_ms, .low = measured_ms, .high = measured_ms});
    foreseen.points.push_back({.x = k, .y = foreseen_ms, .low = foreseen_ms, .high = foreseen_ms});
  }
  const auto by_x = [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; };
  for (auto& [title, lines] : by_title) {
    for (PlotLine* line : {&lines.first, &lines.second}) std::sort(line->points.begin(), line->points.end(), by_x);
    plot.lines.push_back(lines.first);
    if (title != report.main.title) plot.lines.push_back(lines.second);
  }
  return svg_file(plot);
}

}  // namespace echelon::inline planner
