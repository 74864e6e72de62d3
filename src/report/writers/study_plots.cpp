// SPDX-License-Identifier: Apache-2.0
#include "report/writers/study_plots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/writers/study.hpp"

namespace echelon::inline report {
namespace {

static_assert(kPlotColours >= kBudgetParts.size(), "each part of the loss budget has a colour of its own");

int most_ranks(const Evidence& evidence) {
  int most = 0;
  for (const Setting& s : evidence.settings) most = std::max(most, s.ranks());
  return most;
}

std::string line_name(const Evidence& evidence, const Setting& s) {
  return what_of(s) + (evidence.environments.size() > 1 ? fmt::format(" ({})", s.environment) : "");
}

// The colour of a variant in all figures: its index among the variants.
std::size_t colour_of(const Evidence& evidence, const Setting& setting) {
  std::vector<std::string> names;
  for (const Setting& s : evidence.settings)
    if (std::find(names.begin(), names.end(), line_name(evidence, s)) == names.end())
      names.push_back(line_name(evidence, s));
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), line_name(evidence, setting)) - names.begin());
}

// The settings whose curves are shown: the largest size and the best single worker.
std::vector<const Setting*> settings_of_curves(const Evidence& evidence) {
  std::vector<const Setting*> shown;
  for (const Setting& s : evidence.settings)
    if (s.finished() > 0 && (s.ranks() == most_ranks(evidence) || is_baseline(evidence, s))) shown.push_back(&s);
  return shown;
}

// A point of the combined curve of all repetitions: median of the figure, with the least and the greatest.
struct CurvePoint {
  double samples = kUnknown, seconds = kUnknown;
  Spread figure;
};

// The curve at the points where the first finished repetition was evaluated.
std::vector<CurvePoint> curve_of(const Evidence& evidence, const Setting& s, double Evaluation::*axis) {
  std::vector<CurvePoint> points;
  const auto first =
      std::find_if(s.repetitions.begin(), s.repetitions.end(), [](const Repetition& r) { return r.finished(); });
  if (first == s.repetitions.end()) return points;
  for (const Evaluation& e : first->curve) {
    const CurvePoint point{.samples = e.samples,
                           .seconds = axis == &Evaluation::seconds ? e.seconds : evidence.seconds_after(s, e.samples),
                           .figure = evidence.figure_at(s, axis, e.*axis)};
    if (std::isfinite(point.figure.median)) points.push_back(point);
  }
  return points;
}

}  // namespace

bool is_baseline(const Evidence& evidence, const Setting& s) {
  return evidence.baseline_of(s) == &s - evidence.settings.data();
}

GainPlot gain_plot(const Evidence& evidence, const StudyVerdict& verdict) {
  constexpr std::size_t kMostRows = 16;
  GainPlot plot{.title = "Gain over one worker", .rows = {}, .ticks = {}};
  for (const TestRecord& test : verdict.tests) {
    if (test.question != "faster" || test.setting < 0 || !(test.effect.value > 0)) continue;
    const Setting& setting = evidence.settings[static_cast<std::size_t>(test.setting)];
    plot.rows.push_back({line_name(evidence, setting) + fmt::format(" on {}", counted(setting.ranks(), "rank")),
                         test.effect, test.shown});
    if (plot.rows.size() == 1)
      plot.title += ", " + (test.measure == "samples/s" ? "in samples/s" : "in " + test.measure);
  }
  std::stable_sort(plot.rows.begin(), plot.rows.end(),
                   [](const GainRow& a, const GainRow& b) { return a.effect.value > b.effect.value; });
  if (plot.rows.size() > kMostRows) plot.rows.resize(kMostRows);
  if (plot.rows.empty()) return plot;
  double low = 1, high = 1;  // intervals of few repetitions may be wide: the axis ends at 4 times the points
  for (const GainRow& row : plot.rows) low = std::fmin(low, row.effect.value), high = std::fmax(high, row.effect.value);
  double wide_low = low, wide_high = high;
  for (const GainRow& row : plot.rows)
    if (std::isfinite(row.effect.low))
      wide_low = std::fmin(wide_low, row.effect.low), wide_high = std::fmax(wide_high, row.effect.high);
  plot.low = std::fmax(wide_low, low / 4) / 1.1, plot.high = std::fmin(wide_high, high * 4) * 1.1;
  const double step = plot.high / plot.low > 64 ? 4 : plot.high / plot.low > 3 ? 2 : 1.25;
  for (double tick = 1; tick >= plot.low; tick /= step) plot.ticks.insert(plot.ticks.begin(), tick);
  for (double tick = step; tick <= plot.high; tick *= step) plot.ticks.push_back(tick);
  return plot;
}

LinePlot speed_plot(const Evidence& evidence) {
  LinePlot plot{.title = "Speed-up over the best single worker",
                .x_label = "ranks",
                .y_label = "speed-up",
                .lines = {},
                .log2_x = true,
                .log2_y = true,
                .diagonal = true};
  for (const Setting& s : evidence.settings) {
    if (s.finished() == 0 || evidence.baseline_of(s) < 0) continue;
    const double base = evidence.settings[static_cast<std::size_t>(evidence.baseline_of(s))].row.rate.median;
    const std::string name = line_name(evidence, s);
    auto line = std::find_if(plot.lines.begin(), plot.lines.end(), [&](const PlotLine& l) { return l.name == name; });
    if (line == plot.lines.end())
      line = plot.lines.insert(line, {.name = name, .points = {}, .colour = colour_of(evidence, s)});
    line->points.push_back(
        {static_cast<double>(s.ranks()), s.row.speed_up, s.row.rate.low / base, s.row.rate.high / base});
  }
  return plot;
}

StackPlot budget_bars(const Evidence& evidence) {
  constexpr std::size_t kMostBars = 20;
  const bool all = evidence.settings.size() <= kMostBars;
  const int most = most_ranks(evidence);
  StackPlot plot{.title = "Where the ideal speed of k workers went, in percent", .bars = {}, .parts = {}, .values = {}};
  const std::vector<BudgetPart> parts = shown_parts(evidence);
  for (const BudgetPart& part : parts) plot.parts.emplace_back(part.name);
  for (const Setting& s : evidence.settings) {
    if (!s.budget.known() || !(all || s.ranks() == most || is_baseline(evidence, s))) continue;
    plot.bars.push_back(fmt::format("{} on {}", line_name(evidence, s), counted(s.ranks(), "rank")));
    std::vector<double>& values = plot.values.emplace_back();
    for (const BudgetPart& part : parts) values.push_back(100 * (s.budget.*part.share));
  }
  return plot;
}

LinePlot curve_plot(const Evidence& evidence, bool over_time) {
  const int most = most_ranks(evidence);
  const std::string figure = replaced(goal_metric_name(shown_metric(evidence)), "_", " ");
  LinePlot plot{
      .title = fmt::format("{} over {}, on {}", figure, over_time ? "time" : "samples", counted(most, "rank")),
      .x_label = over_time ? "seconds" : "thousand samples",
      .y_label = figure,
      .lines = {}};
  for (const Setting* s : settings_of_curves(evidence)) {
    const bool largest_size = s->ranks() == most;
    PlotLine line{
        .name = line_name(evidence, *s) + (largest_size ? "" : fmt::format(" on {}", counted(s->ranks(), "rank"))),
        .points = {},
        .colour = colour_of(evidence, *s),
        .dashed = !largest_size};
    for (const CurvePoint& p : curve_of(evidence, *s, over_time ? &Evaluation::seconds : &Evaluation::samples))
      line.points.push_back({over_time ? p.seconds : p.samples / 1e3, p.figure.median, p.figure.low, p.figure.high});
    if (!line.points.empty()) plot.lines.push_back(std::move(line));
  }
  return plot;
}

Table evaluations_table(const Evidence& evidence) {
  Table table({"setting", "samples", "seconds", replaced(goal_metric_name(shown_metric(evidence)), "_", " "), "least",
               "greatest"});
  const auto text = [](double value) { return known_or_dash(value, fmt::format("{:.4f}", value)); };
  for (const Setting* s : settings_of_curves(evidence))
    for (const CurvePoint& p : curve_of(evidence, *s, &Evaluation::samples))
      table.row({name_of(*s), count_text(static_cast<std::int64_t>(p.samples)),
                 known_or_dash(p.seconds, fmt::format("{:.2f}", p.seconds)), text(p.figure.median), text(p.figure.low),
                 text(p.figure.high)});
  return table;
}

}  // namespace echelon::inline report
