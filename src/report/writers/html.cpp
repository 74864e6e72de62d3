#include "report/writers/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "report/wire_table.hpp"
#include "report/writers/markup.hpp"
#include "report/writers/study.hpp"
#include "report/writers/study_plots.hpp"

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
details { font-size: .85rem; margin: .8rem 0; }
.note, footer { font-size: .85rem; overflow-wrap: anywhere; }
@page { size: A4 landscape; margin: 12mm; }
@media print {
  :root { --fg: #000; --bg: #fff; --soft: #fff; --rule: #999; }
  body { max-width: none; padding: 0; font-size: 12px; orphans: 1; widows: 1; }
  .note, footer { font-size: 10px; }
  h2 { break-after: avoid; }
  h2 + .note { break-after: avoid; }
  .wide { overflow: visible; }
  table { font-size: 9px; width: 100%; }
  th, td { padding: 1px 4px; white-space: normal; }
  figure, tr { break-inside: avoid; }
  details { display: none; }
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

std::string figures_html(const Evidence& evidence) {
  if (!can_draw()) return fmt::format("<p class=\"note\">{}</p>\n", kInstallGnuplot);
  return figure_html(draw_svg(speed_plot(evidence)), "Medians; bars from the least to the greatest repetition.") +
         figure_html(draw_svg(budget_plot(evidence)), "Numbers in the table below; parts below 0 are drawn as 0.") +
         figure_html(draw_svg(curve_plot(evidence, false)), "First repetition.") +
         figure_html(draw_svg(curve_plot(evidence, true)), "First repetition; start-up and evaluations included.");
}

std::string details_html(const std::string& summary, const std::string& content) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escaped(summary), content);
}

// Closed, and left out in print: the numbers of the curves.
std::string evaluations_html(const Evidence& evidence) {
  const Table table = evaluations_table(evidence);
  if (table.empty()) return {};
  return details_html("Numbers of the curves",
                      fmt::format("<p class=\"note\">{}</p>\n{}", escaped(kEvaluationsText), table_html(table)));
}

// The folders of the runs, which may be hundreds, closed and left out in print.
std::string origin_html(const std::vector<std::string>& origin) {
  std::string lines, folders;
  const std::string runs = std::string(kOriginRuns) + ": ";
  for (const std::string& line : origin) {
    if (!line.starts_with(runs)) {
      lines += fmt::format("<li>{}</li>\n", escaped(line));
      continue;
    }
    for (std::size_t at = runs.size(), end; at < line.size(); at = end + 2) {
      end = std::min(line.find("; ", at), line.size());
      folders += fmt::format("<li>{}</li>\n", escaped(line.substr(at, end - at)));
    }
  }
  if (!folders.empty()) folders = details_html("Folders of the runs", "<ul>\n" + folders + "</ul>\n");
  return fmt::format("<h2>Where it comes from</h2>\n<footer><ul>\n{}</ul>\n{}</footer>\n", lines, folders);
}

}  // namespace

std::string study_html(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source,
                       const std::vector<std::string>& origin) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n{1}</head><body>\n<h1>{0}</h1>\n<div "
      "class=\"verdict\">\n",
      escaped(source.name), kStyle);
  for (const std::string& line : sentences_of(verdict)) out += fmt::format("<p>{}</p>\n", escaped(line));
  for (const GoalLine& goal : verdict.goals)
    out += fmt::format("<p class=\"{0}\">goal {0}: {1}</p>\n", goal.met ? "met" : "missed", escaped(goal.text));
  out += "</div>\n";
  if (evidence.baseline >= 0) {
    out += figures_html(evidence) + evaluations_html(evidence);
    out += "<h2>What was run</h2>\n" + table_html(settings_table(evidence));
    const Table budget = budget_table(evidence);
    if (!budget.empty())
      out += fmt::format("<h2>Loss budget</h2>\n<p class=\"note\">{}</p>\n{}", escaped(budget_text(evidence)),
                         table_html(budget));
    if (const Table compute = compute_table(evidence); !compute.empty())
      out += fmt::format("<h2>Compute and memory of a rank</h2>\n<p class=\"note\">{}</p>\n{}", escaped(kComputeText),
                         table_html(compute));
  }
  if (evidence.baseline >= 0) {
    const Setting& shown = shown_setting(evidence, verdict);
    const WireBytes& bytes = shown.wire;
    if (const Table wire = wire_table(bytes); !wire.empty())
      out += fmt::format("<h2>Bytes on the wire, MB a step: {}</h2>\n<p class=\"note\">{}</p>\n{}",
                         escaped(name_of(shown)), escaped(wire_text(bytes, shown.row)), table_html(wire));
  }
  return out + origin_html(origin) + "</body></html>\n";
}

}  // namespace echelon::inline report
