#include "report/writers/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "report/wire_table.hpp"
#include "report/writers/markup.hpp"
#include "report/writers/plot.hpp"
#include "report/writers/study.hpp"

namespace echelon::inline report {
namespace {

constexpr const char* kStyle = R"(<style>
:root {
  color-scheme: light dark;
  --fg: #1b1f24; --bg: #fff; --soft: #f3f5f8; --rule: #d5dae1; --good: #0a7d33; --bad: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root { --fg: #e4e8ee; --bg: #14171c; --soft: #1e232b; --rule: #39414d; --good: #5fd38a; --bad: #ff8a80; }
}
body {
  font: 16px/1.5 system-ui, sans-serif; color: var(--fg); background: var(--bg);
  max-width: 90rem; margin: 0 auto; padding: 1.5rem;
}
h1 { font-size: 1.6rem; }
h2 { font-size: 1.2rem; margin-top: 2.2rem; }
.verdict { background: var(--soft); border-left: 4px solid #0072b2; padding: .6rem 1rem; }
.verdict p { margin: .35rem 0; }
.met { color: var(--good); }
.missed { color: var(--bad); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--rule); text-align: left; white-space: nowrap; }
th.r, td.r { text-align: right; font-variant-numeric: tabular-nums; }
thead th { background: var(--soft); }
figure { margin: 1.2rem 0; }
figure svg { width: 100%; max-width: 56rem; height: auto; }
.note, footer { font-size: .85rem; overflow-wrap: anywhere; }
@page { size: A4 landscape; margin: 12mm; }
@media print {
  :root { --fg: #000; --bg: #fff; --soft: #fff; --rule: #999; }
  body { max-width: none; padding: 0; font-size: 12px; }
  h2 { break-after: avoid; }
  h2 + .note { break-after: avoid; }
  .wide { overflow: visible; }
  table { font-size: 9px; width: 100%; }
  th, td { padding: 1px 4px; white-space: normal; }
  figure, tr { break-inside: avoid; }
  figure { display: inline-block; width: 49%; vertical-align: top; }
}
</style>)";

// The cells of a line of a pipe table.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::size_t at = line.find('|');
  while (at != std::string::npos) {
    const std::size_t end = line.find('|', at + 1);
    if (end == std::string::npos) break;
    std::string cell = line.substr(at + 1, end - at - 1);
    cell.erase(0, cell.find_first_not_of(' ') == std::string::npos ? cell.size() : cell.find_first_not_of(' '));
    while (!cell.empty() && cell.back() == ' ') cell.pop_back();
    cells.push_back(std::move(cell));
    at = end;
  }
  return cells;
}

std::string table_html(const Table& table) {
  std::istringstream lines(table.markdown());
  std::string header, rule, out = "<div class=\"wide\"><table>\n";
  std::getline(lines, header);
  std::getline(lines, rule);
  const std::vector<std::string> marks = cells_of(rule);
  const auto row = [&](const std::string& line, const char* tag) {
    const std::vector<std::string> cells = cells_of(line);
    out += "<tr>";
    for (std::size_t c = 0; c < cells.size(); ++c)
      out += fmt::format("<{0}{1}>{2}</{0}>", tag, c < marks.size() && marks[c].ends_with(":") ? " class=\"r\"" : "",
                         escaped(cells[c]));
    out += "</tr>\n";
  };
  out += "<thead>";
  row(header, "th");
  out += "</thead><tbody>\n";
  for (std::string line; std::getline(lines, line);) row(line, "td");
  return out + "</tbody></table></div>\n";
}

std::string figure_html(const std::string& svg, const std::string& caption) {
  if (svg.empty()) return {};
  return fmt::format("<figure>{}<figcaption class=\"note\">{}</figcaption></figure>\n", svg, escaped(caption));
}

// One line a variant, over its numbers of ranks.
LinePlot speed_plot(const Evidence& evidence) {
  LinePlot plot{.title = "Speed-up against the best single worker",
                .x_label = "ranks",
                .y_label = "speed-up",
                .lines = {},
                .log2_x = true,
                .diagonal = true};
  const double base = evidence.best_single().row.rate.median;
  for (const Setting& s : evidence.settings) {
    const std::string name = s.label.empty() ? s.row.strategy : s.label;
    auto line = std::find_if(plot.lines.begin(), plot.lines.end(), [&](const PlotLine& l) { return l.name == name; });
    if (line == plot.lines.end()) line = plot.lines.insert(line, {name, {}});
    line->points.push_back(
        {static_cast<double>(s.ranks()), s.row.speed_up, s.row.rate.low / base, s.row.rate.high / base});
  }
  return plot;
}

static_assert(kPlotColours >= kBudgetParts.size(), "each part of the loss budget has a colour of its own");

int most_ranks(const Evidence& evidence) {
  int most = 0;
  for (const Setting& s : evidence.settings) most = std::max(most, s.ranks());
  return most;
}

// Of all settings; where they are too many for a figure, of the best single worker and the largest size.
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

// Curves of the largest size and of the best single worker.
LinePlot curve_plot(const Evidence& evidence, bool over_time) {
  const GoalMetric metric = evidence.has_goal()                                    ? evidence.goal.metric
                            : std::isnan(evidence.best_single().row.test_accuracy) ? GoalMetric::test_loss
                                                                                   : GoalMetric::test_accuracy;
  const int most = most_ranks(evidence);
  std::string figure = goal_metric_name(metric);
  std::replace(figure.begin(), figure.end(), '_', ' ');
  LinePlot plot{.title = fmt::format("{} over {}, on {} ranks and of the best single worker", figure,
                                     over_time ? "time" : "samples", most),
                .x_label = over_time ? "seconds" : "thousand samples",
                .y_label = figure,
                .lines = {}};
  for (const Setting& s : evidence.settings) {
    if (s.ranks() != most && &s != &evidence.best_single()) continue;
    PlotLine line{.name = fmt::format("{}{}", s.label.empty() ? s.row.strategy : s.label,
                                      s.ranks() == most ? "" : fmt::format(" on {}", s.ranks())),
                  .points = {}};
    for (const Evaluation& e : s.curve) {
      const double y = goal_figure(metric, e.test_loss, e.test_accuracy);
      if (std::isfinite(y)) line.points.push_back({over_time ? e.seconds : e.samples / 1e3, y, y, y});
    }
    if (!line.points.empty()) plot.lines.push_back(std::move(line));
  }
  return plot;
}

std::string figures_html(const Evidence& evidence) {
  if (!can_draw()) return fmt::format("<p class=\"note\">{}</p>\n", kInstallGnuplot);
  return figure_html(draw_svg(speed_plot(evidence)), "Medians; bars from the least to the greatest repetition.") +
         figure_html(draw_svg(budget_plot(evidence)), "Numbers in the table below; parts below 0 are drawn as 0.") +
         figure_html(draw_svg(curve_plot(evidence, false)), "First repetition.") +
         figure_html(draw_svg(curve_plot(evidence, true)), "First repetition; start-up and evaluations included.");
}

}  // namespace

std::string study_html(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source,
                       const std::vector<std::string>& origin) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n{1}</head><body>\n<h1>{0}</h1>\n<div "
      "class=\"verdict\">\n",
      escaped(source.name), kStyle);
  for (const std::string& line : verdict.lines) out += fmt::format("<p>{}</p>\n", escaped(line));
  for (const GoalLine& goal : verdict.goals)
    out += fmt::format("<p class=\"{0}\">goal {0}: {1}</p>\n", goal.met ? "met" : "missed", escaped(goal.text));
  out += "</div>\n";
  if (!evidence.settings.empty()) {
    out += figures_html(evidence);
    out += "<h2>What was run</h2>\n" + table_html(settings_table(evidence));
    const Table budget = budget_table(evidence);
    if (!budget.empty())
      out +=
          fmt::format("<h2>Loss budget</h2>\n<p class=\"note\">{}</p>\n{}", escaped(kBudgetText), table_html(budget));
    if (const Table compute = compute_table(evidence); !compute.empty())
      out += fmt::format("<h2>Compute and memory of a rank</h2>\n<p class=\"note\">{}</p>\n{}", escaped(kComputeText),
                         table_html(compute));
  }
  if (!evidence.settings.empty()) {
    const Setting& shown = shown_setting(evidence, verdict);
    const WireBytes bytes = read_wire(shown.attempt);
    if (const Table wire = wire_table(bytes); !wire.empty())
      out += fmt::format("<h2>Bytes on the wire, MB a step: {}</h2>\n<p class=\"note\">{}</p>\n{}",
                         escaped(name_of(shown)), escaped(wire_text(bytes, shown.row)), table_html(wire));
  }
  out += "<h2>Where it comes from</h2>\n<footer><ul>\n";
  for (const std::string& line : origin) out += fmt::format("<li>{}</li>\n", escaped(line));
  return out + "</ul></footer>\n</body></html>\n";
}

}  // namespace echelon::inline report
