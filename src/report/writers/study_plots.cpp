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

// One colour a variant in all figures: its place among the variants.
std::size_t colour_of(const Evidence& evidence, const Setting& setting) {
  std::vector<std::string> names;
  for (const Setting& s : evidence.settings)
    if (std::find(names.begin(), names.end(), what_of(s)) == names.end()) names.push_back(what_of(s));
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), what_of(setting)) - names.begin());
}

// Those with curves: the largest size and the best single worker.
std::vector<const Setting*> settings_of_curves(const Evidence& evidence) {
  std::vector<const Setting*> shown;
  for (const Setting& s : evidence.settings)
    if (s.finished() > 0 && (s.ranks() == most_ranks(evidence) || &s == &evidence.best_single())) shown.push_back(&s);
  return shown;
}

// Of the first finished repetition.
const std::vector<Evaluation>& first_curve(const Setting& s) {
  static const std::vector<Evaluation> none;
  for (const Repetition& r : s.repetitions)
    if (r.finished()) return r.curve;
  return none;
}

}  // namespace

LinePlot speed_plot(const Evidence& evidence) {
  LinePlot plot{.title = "Speed-up against the best single worker",
                .x_label = "ranks",
                .y_label = "speed-up",
                .lines = {},
                .log2_x = true,
                .diagonal = true};
  const double base = evidence.best_single().row.rate.median;
  for (const Setting& s : evidence.settings) {
    if (s.finished() == 0) continue;
    const std::string name = what_of(s);
    auto line = std::find_if(plot.lines.begin(), plot.lines.end(), [&](const PlotLine& l) { return l.name == name; });
    if (line == plot.lines.end())
      line = plot.lines.insert(line, {.name = name, .points = {}, .colour = colour_of(evidence, s)});
    line->points.push_back(
        {static_cast<double>(s.ranks()), s.row.speed_up, s.row.rate.low / base, s.row.rate.high / base});
  }
  return plot;
}

StackPlot budget_plot(const Evidence& evidence) {
  constexpr std::size_t kMostBars = 20;
  const bool all = evidence.settings.size() <= kMostBars;
  const int most = most_ranks(evidence);
  StackPlot plot{
      .title = "Loss budget: where k times the best single worker went, %", .bars = {}, .parts = {}, .values = {}};
  const std::vector<BudgetPart> parts = shown_parts(evidence);
  for (const BudgetPart& part : parts) plot.parts.emplace_back(part.name);
  for (const Setting& s : evidence.settings) {
    if (!s.budget.known() || !(all || s.ranks() == most || &s == &evidence.best_single())) continue;
    plot.bars.push_back(s.label.empty() ? std::to_string(s.ranks()) : fmt::format("{} on {}", s.label, s.ranks()));
    std::vector<double>& values = plot.values.emplace_back();
    for (const BudgetPart& part : parts) values.push_back(100 * (s.budget.*part.share));
  }
  return plot;
}

LinePlot curve_plot(const Evidence& evidence, bool over_time) {
  const GoalMetric metric = shown_metric(evidence);
  const int most = most_ranks(evidence);
  const std::string figure = replaced(goal_metric_name(metric), "_", " ");
  LinePlot plot{.title = fmt::format("{} over {}, on {} ranks and of the best single worker", figure,
                                     over_time ? "time" : "samples", most),
                .x_label = over_time ? "seconds" : "thousand samples",
                .y_label = figure,
                .lines = {}};
  for (const Setting* s : settings_of_curves(evidence)) {
    const bool largest_size = s->ranks() == most;
    PlotLine line{.name = what_of(*s) + (largest_size ? "" : fmt::format(" on {}", s->ranks())),
                  .points = {},
                  .colour = colour_of(evidence, *s),
                  .dashed = !largest_size};
    for (const Evaluation& e : first_curve(*s)) {
      const double y = goal_figure(metric, e.test_loss, e.test_accuracy);
      if (std::isfinite(y)) line.points.push_back({over_time ? e.seconds : e.samples / 1e3, y, y, y});
    }
    if (!line.points.empty()) plot.lines.push_back(std::move(line));
  }
  return plot;
}

Table evaluations_table(const Evidence& evidence) {
  const GoalMetric metric = shown_metric(evidence);
  Table table({"setting", "samples", "seconds", replaced(goal_metric_name(metric), "_", " ")});
  for (const Setting* s : settings_of_curves(evidence)) {
    std::vector<const Evaluation*> known;
    for (const Evaluation& e : first_curve(*s))
      if (std::isfinite(goal_figure(metric, e.test_loss, e.test_accuracy))) known.push_back(&e);
    const std::size_t each = (known.size() + kMostEvaluations - 1) / kMostEvaluations;  // counted from the last one
    for (std::size_t i = 0; i < known.size(); ++i) {
      const Evaluation& e = *known[i];
      if ((known.size() - 1 - i) % each != 0) continue;
      table.row({name_of(*s), count_text(static_cast<std::int64_t>(e.samples)), fmt::format("{:.2f}", e.seconds),
                 fmt::format("{:.4f}", goal_figure(metric, e.test_loss, e.test_accuracy))});
    }
  }
  return table;
}

}  // namespace echelon::inline report
