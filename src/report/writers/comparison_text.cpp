// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/escape.hpp"
#include "base/text.hpp"
#include "report/writers/comparison.hpp"

namespace echelon::inline report {
namespace {

double tolerance_of(const ComparedFigure& figure, const CompareSettings& settings) {
  return settings.tolerance[static_cast<std::size_t>(figure.group)];
}

std::string value_text(const ComparedFigure& figure, double value) {
  if (std::isnan(value)) return "-";
  switch (figure.group) {
    case FigureGroup::throughput: return rate_text(value);
    case FigureGroup::accuracy: return fmt::format("{:.2f} %", 100 * value);
    case FigureGroup::loss: return fmt::format("{:.4f}", value);
    case FigureGroup::memory: return bytes_text(value * 1024 * 1024);
    case FigureGroup::counts: break;
  }
  if (value != std::round(value)) return fmt::format("{:.1f}", value);
  return count_text(static_cast<std::int64_t>(value)) + (figure.unit == "bytes" ? " B" : "");
}

// The change with its sign, without the unit.
std::string plain_percent(double change) {
  if (change != 0 && std::fabs(change) < 5e-5) return fmt::format("{:+.1e}", 100 * change);
  return fmt::format("{:+.2f}", 100 * change);
}

const char* unit_of_change(const ComparedFigure& figure) {
  return figure.group == FigureGroup::accuracy ? "points" : "%";
}

std::string change_text(const ComparedFigure& figure) {
  if (std::isnan(figure.change)) return "-";
  return figure.change == 0 ? "0" : plain_percent(figure.change) + " " + unit_of_change(figure);
}

std::string interval_text(const ComparedFigure& figure) {
  if (std::isnan(figure.low)) return "-";
  return fmt::format("{} to {}", plain_percent(figure.low), plain_percent(figure.high));
}

// Whether the interval still includes a change for the worse beyond the tolerance.
bool hides_worse(const ComparedFigure& figure, const CompareSettings& settings) {
  const bool falls = figure.group == FigureGroup::throughput || figure.group == FigureGroup::accuracy;
  return (falls ? -figure.low : figure.high) > tolerance_of(figure, settings);
}

std::string verdict_text(const ComparedFigure& figure, const CompareSettings& settings) {
  switch (figure.verdict) {
    case Change::worse: return "worse";
    case Change::better: return "better";
    case Change::unknown: return figure.note;
    case Change::none: break;
  }
  if (figure.change == 0) return "equal";
  return hides_worse(figure, settings) ? "too noisy for the tolerance" : "within noise or tolerance";
}

std::string level_text(const CompareSettings& settings) {
  return fmt::format("{:g} %", 100 * (1 - settings.significance));
}

// Includes the columns of the test if there was one.
Table table_of(const ComparedRuns& runs, const CompareSettings& settings) {
  const bool tested = std::any_of(runs.figures.begin(), runs.figures.end(),
                                  [](const ComparedFigure& figure) { return !std::isnan(figure.p); });
  const auto row = [&](std::vector<std::string> left, const std::vector<std::string>& test,
                       const std::vector<std::string>& right) {
    if (tested) left.insert(left.end(), test.begin(), test.end());
    left.insert(left.end(), right.begin(), right.end());
    return left;
  };
  Table table(
      row({"figure", "base", "new", "change"}, {level_text(settings) + " interval", "p"}, {"tolerance", "verdict"}));
  for (const ComparedFigure& figure : runs.figures)
    table.row(row({figure.name, value_text(figure, figure.base), value_text(figure, figure.fresh), change_text(figure)},
                  {interval_text(figure), std::isnan(figure.p) ? "-" : fmt::format("{:.2g}", figure.p)},
                  {fmt::format("{:g} {}", 100 * tolerance_of(figure, settings), unit_of_change(figure)),
                   verdict_text(figure, settings)}));
  return table;
}

}  // namespace

std::string change_sentence(const ComparedFigure& figure, const CompareSettings& settings) {
  if (figure.verdict == Change::unknown) return fmt::format("{} is not compared: {}", figure.name, figure.note);
  std::string change = plain_percent(std::fabs(figure.change)).substr(1);
  if (std::isinf(figure.change)) change = "infinitely many";
  std::string out = fmt::format("{} is {} {} {}: {} before, {} now", figure.name, change, unit_of_change(figure),
                                figure.change > 0 ? "higher" : "lower", value_text(figure, figure.base),
                                value_text(figure, figure.fresh));
  std::string more = std::isnan(figure.p) ? ""
                                          : fmt::format("{} interval {} {}, p = {:.2g}; ", level_text(settings),
                                                        interval_text(figure), unit_of_change(figure), figure.p);
  more += fmt::format("tolerance {:g} {}", 100 * tolerance_of(figure, settings), unit_of_change(figure));
  return fmt::format("{} ({})", out, more);
}

std::string comparison_text(const Comparison& comparison) {
  constexpr std::size_t kColumns = 120;
  std::string out, worse;
  for (const ComparedRuns& runs : comparison.runs) {
    out += folded_text(runs.title, kColumns);
    out += fmt::format("{} of BASE, {} of NEW\n", counted(runs.base_attempts, "attempt"),
                       counted(runs.fresh_attempts, "attempt"));
    for (const std::string& key : runs.allowed) out += folded_text("differs, as allowed: " + key, kColumns, "", "  ");
    out += "\n" + table_of(runs, comparison.settings).text(kColumns);
    if (runs.single_starts)
      out += folded_text(
          "note: with one attempt per side, differences between two starts of one build are not part of the noise. For "
          "more attempts: --set run.restart=never",
          kColumns, "", "  ");
    out += "\n";
    for (const ComparedFigure& figure : runs.figures)
      if (figure.verdict == Change::worse)
        worse += folded_text(runs.title, kColumns, "worse: ", "       ") +
                 folded_text(change_sentence(figure, comparison.settings), kColumns, "       ", "       ");
  }
  for (const std::string& note : comparison.notes) out += folded_text("note: " + note, kColumns, "", "  ");
  out += worse;
  std::int64_t noisy = 0;
  double needed = 0;
  for (const ComparedRuns& runs : comparison.runs)
    for (const ComparedFigure& figure : runs.figures)
      if (figure.verdict == Change::none && figure.change != 0 && hides_worse(figure, comparison.settings))
        ++noisy, needed = std::fmax(needed, figure.attempts_needed);
  if (noisy > 0)
    out += folded_text(
        fmt::format(
            "{} too noisy to tell: run more attempts, alternating between the builds, on an idle machine{}",
            noisy == 1 ? "1 figure is" : counted(noisy, "figure") + " are",
            needed > 0 ? fmt::format("; with this noise, about {:.0f} per side find a change as large as the tolerance",
                                     needed)
                       : ""),
        kColumns);
  const int worse_count = comparison.count(Change::worse), better = comparison.count(Change::better);
  out += fmt::format("{}: {} worse, {} better, {} without a change beyond noise and tolerance\n",
                     worse_count > 0 ? "REGRESSION" : "no regression", counted(worse_count, "figure"), better,
                     comparison.count(Change::none));
  return escaped_for_terminal(out);
}

}  // namespace echelon::inline report
