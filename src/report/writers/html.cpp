// SPDX-License-Identifier: Apache-2.0
#include "report/writers/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/escape.hpp"
#include "report/writers/html_template.hpp"
#include "report/writers/study.hpp"
#include "report/writers/study_plots.hpp"

namespace echelon::inline report {
namespace {

std::string shown(const std::string& text) { return escaped_for_markup(text); }

std::string note_html(const std::string& text) { return fmt::format("<p class=\"note\">{}</p>\n", shown(text)); }

std::string list_html(const std::vector<std::string>& lines) {
  std::string out = "<ul>\n";
  for (const std::string& line : lines) out += fmt::format("<li>{}</li>\n", shown(line));
  return out + "</ul>\n";
}

std::string details_html(const std::string& summary, const std::string& content) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", shown(summary), content);
}

// A table that scrolls inside its own box while the first column stays. `chosen`: the highlighted row.
std::string table_html(const Table& table, std::ptrdiff_t chosen = -1) {
  const std::vector<bool> right = table.right_set();
  const auto mark = [&](std::size_t column) { return right[column] ? " class=\"r\"" : ""; };
  std::string out = "<div class=\"wide\"><table class=\"sortable\">\n<thead><tr>";
  for (std::size_t c = 0; c < right.size(); ++c)
    out += fmt::format("<th scope=\"col\"{}>{}</th>", mark(c), shown(table.header()[c]));
  out += "</tr></thead><tbody>\n";
  for (const std::vector<std::string>& row : table.rows()) {
    out += &row - table.rows().data() == chosen ? "<tr class=\"chosen\">" : "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c)
      out += c == 0 ? fmt::format("<th scope=\"row\"{}>{}</th>", mark(c), shown(row[c]))
                    : fmt::format("<td{}>{}</td>", mark(c), shown(row[c]));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

// The first sentence in large type, its first word in the colour of the answer.
std::string answer_html(const StudyVerdict& verdict) {
  const auto [head, rest] = headline_parts(verdict.headline);
  const std::size_t word = std::min({head.find(':'), head.find('.'), head.size()});
  const char* kind = verdict.answer == Answer::yes ? "yes" : verdict.answer == Answer::no ? "no" : "undecided";
  std::string out = fmt::format("<section class=\"answer {}\">\n<h1><b>{}</b>{}</h1>\n", kind,
                                shown(head.substr(0, word)), shown(head.substr(word)));
  if (!rest.empty()) out += fmt::format("<p>{}</p>\n", shown(rest));
  if (verdict.environments.size() > 1)
    for (const EnvironmentVerdict& e : verdict.environments)
      out += fmt::format("<p><b>{}</b>: {}</p>\n", shown(e.environment), shown(e.headline));
  return out + "</section>\n";
}

// On a phone the rows are cards, so each cell carries its heading.
std::string wants_html(const Evidence& evidence, const StudyVerdict& verdict) {
  const Table table = wants_table(evidence, verdict);
  if (table.empty()) return {};
  std::string out = "<div class=\"wide\"><table class=\"wants\">\n<thead><tr>";
  for (const std::string& heading : table.header()) out += fmt::format("<th scope=\"col\">{}</th>", shown(heading));
  out += "</tr></thead><tbody>\n";
  for (const std::vector<std::string>& row : table.rows()) {
    out += fmt::format("<tr><th scope=\"row\">{}</th>", shown(row[0]));
    if (verdict.rows[static_cast<std::size_t>(&row - table.rows().data())].setting < 0) {  // the row gives the reason
      out += fmt::format("<td class=\"open\" colspan=\"{}\">{}</td></tr>\n", row.size() - 1, shown(row[1]));
      continue;
    }
    for (std::size_t c = 1; c < row.size(); ++c)
      out += row[c] == "-" ? std::string("<td class=\"none\">-</td>")
             : c > 2       ? fmt::format("<td data-of=\"{}:\">{}</td>", shown(table.header()[c]), shown(row[c]))
                           : fmt::format("<td>{}</td>", shown(row[c]));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string said_html(const StudyVerdict& verdict) {
  std::string out;
  const auto add = [&](const char* heading, const std::string& list) {
    out += fmt::format("<section><h3>{}</h3>\n{}</section>\n", heading, list);
  };
  if (!verdict.goals.empty()) {
    std::string goals = "<ul>\n";
    for (const GoalLine& goal : verdict.goals)
      goals += fmt::format("<li class=\"{0}\">{1}: {2}</li>\n", goal.met ? "met" : "missed",
                           goal.met ? "Met" : "Missed", shown(goal.text));
    add("Goals", goals + "</ul>\n");
  }
  if (const std::vector<std::string> faster = faster_lines(verdict); !faster.empty())
    add("Faster, at the price of quality", list_html(faster));
  if (!verdict.limits.empty()) add("What limits it", list_html(verdict.limits));
  if (!verdict.caveats.empty()) add("Caveats", list_html(verdict.caveats));
  return out.empty() ? out : "<div class=\"said\">\n" + out + "</div>\n";
}

std::string plot_html(const LinePlot& plot, const std::string& caption) {
  const std::string svg = curves_svg(plot);
  if (svg.empty()) return {};
  std::string legend;
  for (std::size_t i = 0; i < plot.lines.size(); ++i)
    legend += fmt::format(
        "<li><button type=\"button\" data-line=\"{}\" aria-pressed=\"true\"><i style=\"color: "
        "{}\"{}></i>{}</button></li>\n",
        i, plot_colour(colour_of(plot, i)), plot.lines[i].dashed ? " class=\"dashed\"" : "", shown(plot.lines[i].name));
  return fmt::format("<figure class=\"plot\"><h3>{}</h3>\n{}\n<ul class=\"legend\">\n{}</ul>\n{}</figure>\n",
                     shown(plot.title), svg, legend, note_html(caption));
}

std::string bars_html(const StackPlot& stack) {
  if (stack.bars.empty()) return {};
  std::string out = fmt::format("<figure><h3>{}</h3>\n<div class=\"bars\">\n", shown(stack.title)), legend;
  for (std::size_t b = 0; b < stack.bars.size(); ++b) {
    out += fmt::format("<span>{}</span><div>", shown(stack.bars[b]));
    for (std::size_t p = 0; p < stack.parts.size(); ++p)
      if (const double share = stack.values[b][p]; share > 0.05)
        out += fmt::format("<span style=\"flex: {0:.1f} 0 0; background: {1}\" title=\"{2}: {3} {0:.1f} %\"></span>",
                           share, plot_colour(p), shown(stack.bars[b]), shown(stack.parts[p]));
    out += "</div>\n";
  }
  for (std::size_t p = 0; p < stack.parts.size(); ++p)
    legend += fmt::format("<li><span><i class=\"box\" style=\"background: {}\"></i>{}</span></li>\n", plot_colour(p),
                          shown(stack.parts[p]));
  return out + fmt::format("</div>\n<ul class=\"legend\">\n{}</ul></figure>\n", legend);
}

// Every setting's gain over one worker with its interval: a point and a line on a logarithmic axis.
std::string gains_html(const Evidence& evidence, const StudyVerdict& verdict) {
  const GainPlot plot = gain_plot(evidence, verdict);
  if (plot.rows.empty()) return {};
  const auto at = [&](double value) {
    return 100 * std::clamp(std::log(value / plot.low) / std::log(plot.high / plot.low), 0.0, 1.0);
  };
  std::string out = fmt::format("<figure><h3>{}</h3>\n<div class=\"gains\">\n", shown(plot.title));
  for (const GainRow& row : plot.rows) {
    out += fmt::format("<span>{}</span><div class=\"{}\">", shown(row.name), row.shown ? "shown" : "quiet");
    out += fmt::format("<i class=\"one\" style=\"left: {:.1f}%\"></i>", at(1));
    if (std::isfinite(row.effect.low))
      out += fmt::format("<i style=\"left: {:.1f}%; width: {:.1f}%\"></i>", at(row.effect.low),
                         at(row.effect.high) - at(row.effect.low));
    out +=
        fmt::format("<i class=\"dot\" style=\"left: {:.1f}%\" title=\"{}\"></i></div><span>{}</span>\n",
                    at(row.effect.value), shown(row.name + ": " + gain_cell(row.effect)), shown(gain_cell(row.effect)));
  }
  out += "<span></span><div class=\"axis\">";
  for (const double tick : plot.ticks)
    out += fmt::format("<span style=\"left: {:.1f}%\">{:.3g}x</span>", at(tick), tick);
  return out + "</div><span></span>\n</div>\n" + note_html(kGainsText) + "</figure>\n";
}

std::string figures_html(const Evidence& evidence, const StudyVerdict& verdict) {
  const std::string plots =
      gains_html(evidence, verdict) +
      plot_html(speed_plot(evidence),
                "Medians over the repetitions; the band spans the smallest to the largest value.") +
      plot_html(curve_plot(evidence, false), kCurvesText) +
      plot_html(curve_plot(evidence, true), std::string(kCurvesText) + " Start-up and evaluations are included.");
  if (plots.empty()) return {};
  return fmt::format("<h2>Figures</h2>\n{}<div class=\"columns plots\">\n{}</div>\n",
                     note_html("Click a name to hide its curve; point at a marker to see its values."), plots);
}

std::string tables_html(const Evidence& evidence, const StudyVerdict& verdict) {
  std::string out = "<h2>What was run</h2>\n" + table_html(settings_table(evidence), verdict.recommended);
  if (const Table budget = budget_table(evidence); !budget.empty())
    out += "<h2>Loss budget</h2>\n" + note_html(budget_text(evidence)) + bars_html(budget_bars(evidence)) +
           details_html("Numbers of the bars, in percent", table_html(budget));
  if (const Table compute = compute_table(evidence); !compute.empty())
    out += "<h2>Compute and memory of a rank</h2>\n" + note_html(kComputeText) + table_html(compute);
  const Setting& setting = shown_setting(evidence, verdict);
  if (const Table wire = wire_table(setting.wire); !wire.empty())
    out += fmt::format("<h2>Bytes on the wire, MB a step: {}</h2>\n", shown(name_of(setting))) +
           note_html(wire_text(setting.wire, setting.row)) + table_html(wire);
  if (const Table curves = evaluations_table(evidence); !curves.empty())
    out += details_html("Numbers of the curves", note_html(kEvaluationsText) + table_html(curves));
  return out;
}

// Lists the folders of the runs, possibly hundreds, collapsed on the page and left out in print.
std::string origin_html(const std::vector<std::string>& origin) {
  const std::string runs = std::string(kOriginRuns) + ": ";
  std::vector<std::string> lines, folders;
  for (const std::string& line : origin) {
    if (!line.starts_with(runs)) {
      lines.push_back(line);
      continue;
    }
    for (std::size_t at = runs.size(), end; at < line.size(); at = end + 2) {
      end = std::min(line.find("; ", at), line.size());
      folders.push_back(line.substr(at, end - at));
    }
  }
  return "<h2>Where it comes from</h2>\n<footer class=\"origin\">" + list_html(lines) +
         (folders.empty() ? "" : details_html("Folders of the runs", list_html(folders))) + "</footer>\n";
}

// Fills in the {{..}} of the frame in one pass: inserted text is not searched again.
std::string framed(const std::vector<std::pair<std::string, std::string>>& parts) {
  std::string frame = kPageFrame, out;
  std::size_t at = 0;
  for (std::size_t open; (open = frame.find("{{", at)) != std::string::npos;) {
    const std::size_t close = frame.find("}}", open);
    const std::string name = frame.substr(open + 2, close - open - 2);
    const auto part = std::find_if(parts.begin(), parts.end(), [&](const auto& p) { return p.first == name; });
    out += frame.substr(at, open - at) + (part == parts.end() ? "" : part->second);
    at = close + 2;
  }
  return out + frame.substr(at);
}

}  // namespace

std::string study_html(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source,
                       const std::vector<std::string>& origin) {
  std::string facts;
  for (const std::string& fact : study_facts(evidence, source)) facts += fmt::format("<span>{}</span>", shown(fact));
  const bool any = evidence.baseline >= 0;
  return framed({{"title", shown(source.name)},
                 {"style", kPageStyle},
                 {"name", shown(source.name)},
                 {"facts", facts},
                 {"answer", answer_html(verdict)},
                 {"wants", wants_html(evidence, verdict)},
                 {"said", said_html(verdict)},
                 {"figures", any ? figures_html(evidence, verdict) : ""},
                 {"tables", any ? tables_html(evidence, verdict) : ""},
                 {"origin", origin_html(origin)},
                 {"script", kPageScript}});
}

}  // namespace echelon::inline report
