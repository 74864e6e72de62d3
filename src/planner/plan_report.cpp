// SPDX-License-Identifier: Apache-2.0
#include "planner/plan_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/escape.hpp"
#include "base/text.hpp"

namespace echelon::inline planner {
namespace {

constexpr std::size_t kMostColumns = 5;

std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }

// Host-hours for a million samples.
double node_hours(const ForecastRow& row) { return row.hosts * 1e6 / row.samples_per_s / 3600; }

Table main_table(const PlanReport& report) {
  std::vector<std::string> header = {"replicas", "hosts", "step",     "range", "samples/s", "efficiency",
                                     "compute",  "skew",  "exchange", "codec", "memory",    "host-h / M samples"};
  if (report.cost.node_hour > 0) header.push_back(report.cost.currency + " / M samples");
  header.emplace_back("by");
  Table table(header);
  for (const ForecastRow& row : report.main.rows) {
    std::vector<std::string> cells = {count_text(row.replicas),
                                      count_text(row.hosts),
                                      seconds_text(row.step_s),
                                      fmt::format("{} to {}", seconds_text(row.low_s), seconds_text(row.high_s)),
                                      rate_text(row.samples_per_s),
                                      percent(row.efficiency),
                                      percent(row.compute_s / row.step_s),
                                      percent(row.skew_s / row.step_s),
                                      percent(row.exchange_s / row.step_s),
                                      percent(row.codec_s / row.step_s),
                                      row.memory > 0 ? bytes_text(row.memory) : "-",
                                      fmt::format("{:.3g}", node_hours(row))};
    if (report.cost.node_hour > 0) cells.push_back(fmt::format("{:.2f}", report.cost.node_hour * node_hours(row)));
    cells.emplace_back(row.simulated ? "simulation" : fmt::format("formula, {:.0f} %", 100 * row.error));
    table.row(std::move(cells));
  }
  return table;
}

// Returns the rows that the comparison shows: at most kMostColumns, evenly spaced, with the first and the last.
std::vector<std::size_t> columns_of(const Forecast& forecast) {
  std::vector<std::size_t> columns;
  const std::size_t n = forecast.rows.size(), shown = std::min(n, kMostColumns);
  for (std::size_t i = 0; i < shown; ++i) columns.push_back(shown == 1 ? 0 : i * (n - 1) / (shown - 1));
  return columns;
}

Table variant_table(const PlanReport& report) {
  const std::vector<std::size_t> columns = columns_of(report.main);
  std::vector<std::string> header = {"exchange"};
  for (const std::size_t c : columns)
    header.push_back(fmt::format("{} replicas", count_text(report.main.rows[c].replicas)));
  header.insert(header.end(), {"memory", "90 % up to", "50 % up to", "knee"});
  Table table(header);
  const auto up_to = [](int k) { return k > 0 ? count_text(k) : std::string("-"); };
  const auto add = [&](const Forecast& forecast) {
    std::vector<std::string> cells = {forecast.title};
    for (const std::size_t c : columns)
      cells.push_back(
          fmt::format("{} {:.0f} %", seconds_text(forecast.rows[c].step_s), 100 * forecast.rows[c].efficiency));
    const double memory = forecast.rows.back().memory;
    cells.push_back(memory > 0 ? bytes_text(memory) : "-");
    cells.insert(cells.end(), {up_to(forecast.most_at_90), up_to(forecast.most_at_50), up_to(forecast.knee)});
    table.row(std::move(cells));
  };
  add(report.main);
  for (const Forecast& variant : report.variants) add(variant);
  return table;
}

Table mesh_table(const PlanReport& report) {
  Table table({"ranks", "mesh", "step", "samples/s", "compute", "in replica", "exchange", "memory", ""});
  const auto time = [](double seconds) { return seconds > 0 ? seconds_text(seconds) : "0"; };
  for (const MeshForecast& mesh : report.meshes)
    table.row({count_text(mesh.ranks), mesh.mesh, time(mesh.price.step_s()), rate_text(mesh.samples_per_s),
               time(mesh.price.compute_s), time(mesh.price.between_s), time(mesh.price.exchange_s),
               bytes_text(mesh.memory), mesh.verdict});
  return table;
}

Table point_table(const PlanReport& report) {
  Table table({"run", "exchange", "replicas", "measured", "predicted", "range", "error", ""});
  for (const MeasuredPoint& point : report.points)
    table.row({point.folder, point.title, count_text(point.replicas), seconds_text(point.measured_s),
               seconds_text(point.predicted.step_s),
               fmt::format("{} to {}", seconds_text(point.predicted.low_s), seconds_text(point.predicted.high_s)),
               fmt::format("{:+.1f} %", 100 * (point.predicted.step_s / point.measured_s - 1)),
               point.calibrates ? "calibrates" : ""});
  return table;
}

std::string knee_text(const Forecast& forecast) {
  const auto up_to = [&](int k) {
    const bool last = k == forecast.rows.back().replicas;
    return k > 0 ? fmt::format("up to {}{}", count_text(k), last ? " or more" : "") : std::string("nowhere");
  };
  return fmt::format(
      "Knee: doubling the replicas gives at least half of a doubling of samples/s {}. Efficiency of 90 %: {}; of 50 %: "
      "{}.",
      up_to(forecast.knee), up_to(forecast.most_at_90), up_to(forecast.most_at_50));
}

nlohmann::ordered_json json_of(const Forecast& forecast) {
  nlohmann::ordered_json all = {{"exchange", forecast.title},
                                {"knee", forecast.knee},
                                {"most_at_90_percent", forecast.most_at_90},
                                {"most_at_50_percent", forecast.most_at_50}};
  for (const ForecastRow& row : forecast.rows)
    all["rows"].push_back({{"replicas", row.replicas},
                           {"ranks", row.ranks},
                           {"hosts", row.hosts},
                           {"step_s", row.step_s},
                           {"low_s", row.low_s},
                           {"high_s", row.high_s},
                           {"compute_s", row.compute_s},
                           {"skew_s", row.skew_s},
                           {"exchange_s", row.exchange_s},
                           {"codec_s", row.codec_s},
                           {"samples_per_s", row.samples_per_s},
                           {"efficiency", row.efficiency},
                           {"memory_bytes", row.memory > 0 ? nlohmann::ordered_json(row.memory) : nullptr},
                           {"host_hours_per_million_samples", node_hours(row)},
                           {"simulated", row.simulated},
                           {"model_error", row.error}});
  return all;
}

}  // namespace

std::string plan_text(const PlanReport& report, PlanFormat format) {
  constexpr std::size_t kColumns = 120;
  const bool markdown = format == PlanFormat::markdown;
  const auto shown = [&](const Table& table) { return markdown ? table.markdown() : table.text(kColumns); };
  const auto inside = [&](const std::string& text) { return markdown ? escaped_for_markdown(text) : text; };
  const auto heading = [&](const std::string& text) {
    return markdown ? fmt::format("\n## {}\n\n", inside(text)) : "\n" + folded_text(text, kColumns);
  };
  std::string text;
  for (const std::string& fact : report.facts)
    text += markdown ? "* " + inside(fact) + "\n" : folded_text(fact, kColumns, "", "  ");
  text += heading(report.main.title) + shown(main_table(report)) + (markdown ? "\n" : "");
  text += markdown ? knee_text(report.main) + "\n" : folded_text(knee_text(report.main), kColumns);
  if (!report.variants.empty()) text += heading("Step and efficiency of every exchange") + shown(variant_table(report));
  if (!report.meshes.empty()) text += heading("Replicas or parts of the model") + shown(mesh_table(report));
  if (!report.points.empty()) text += heading("Compared with measurements") + shown(point_table(report));
  if (!report.notes.empty()) text += "\n";
  for (const std::string& note : report.notes)
    text += markdown ? "note: " + inside(note) + "\n" : folded_text("note: " + note, kColumns, "", "  ");
  return markdown ? text : escaped_for_terminal(text);
}

std::string plan_csv(const PlanReport& report) {
  Table table({"exchange", "replicas", "ranks", "hosts", "step_s", "low_s", "high_s", "compute_s", "skew_s",
               "exchange_s", "codec_s", "samples_per_s", "efficiency", "memory_bytes", "host_hours_per_million_samples",
               "simulated"});
  const auto add = [&](const Forecast& forecast) {
    for (const ForecastRow& row : forecast.rows) {
      std::vector<std::string> cells = {forecast.title, std::to_string(row.replicas), std::to_string(row.ranks),
                                        std::to_string(row.hosts)};
      for (const double value : {row.step_s, row.low_s, row.high_s, row.compute_s, row.skew_s, row.exchange_s,
                                 row.codec_s, row.samples_per_s, row.efficiency, row.memory, node_hours(row)})
        cells.push_back(fmt::format("{:.6g}", value));
      cells.emplace_back(row.simulated ? "1" : "0");
      table.row(std::move(cells));
    }
  };
  add(report.main);
  for (const Forecast& variant : report.variants) add(variant);
  return table.csv();
}

nlohmann::ordered_json plan_json(const PlanReport& report) {
  nlohmann::ordered_json all = {{"format", "echelon-plan"}, {"version", 1}, {"facts", report.facts}};
  all["plans"].push_back(json_of(report.main));
  for (const Forecast& variant : report.variants) all["plans"].push_back(json_of(variant));
  for (const MeshForecast& mesh : report.meshes)
    all["meshes"].push_back({{"ranks", mesh.ranks},
                             {"mesh", mesh.mesh},
                             {"step_s", mesh.price.step_s()},
                             {"compute_s", mesh.price.compute_s},
                             {"between_s", mesh.price.between_s},
                             {"exchange_s", mesh.price.exchange_s},
                             {"samples_per_s", mesh.samples_per_s},
                             {"memory_bytes", mesh.memory},
                             {"verdict", mesh.verdict}});
  for (const MeasuredPoint& point : report.points)
    all["points"].push_back({{"run", point.folder},
                             {"exchange", point.title},
                             {"replicas", point.replicas},
                             {"measured_s", point.measured_s},
                             {"predicted_s", point.predicted.step_s},
                             {"calibrates", point.calibrates}});
  if (report.cost.node_hour > 0)
    all["cost"] = {{"node_hour", report.cost.node_hour}, {"currency", report.cost.currency}};
  all["notes"] = report.notes;
  return all;
}

}  // namespace echelon::inline planner
