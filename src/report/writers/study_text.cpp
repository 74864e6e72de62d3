// SPDX-License-Identifier: Apache-2.0
// A study for the terminal and as Markdown: the answer first.
#include <fmt/format.h>

#include "base/escape.hpp"
#include "report/wire_table.hpp"
#include "report/writers/study.hpp"

namespace echelon::inline report {
namespace {

constexpr std::size_t kTerminal = 120, kPage = 118;

// A section of the terminal's text; "" if it has no lines.
std::string section(const char* heading, const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += folded_text(line, kTerminal, "* ", "  ");
  return out.empty() ? out : fmt::format("\n{}\n{}", heading, out);
}

std::string section(const char* heading, const Table& table) {
  return table.empty() ? "" : fmt::format("\n{}\n{}", heading, table.text(kTerminal));
}

std::vector<std::string> goal_lines(const StudyVerdict& verdict) {
  std::vector<std::string> lines;
  for (const GoalLine& goal : verdict.goals) lines.push_back((goal.met ? "met: " : "MISSED: ") + goal.text);
  return lines;
}

std::string items(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += folded_text(escaped_for_markdown(line), kPage, "* ", "  ");
  return out;
}

std::string markdown_section(const std::string& heading, const std::string& content) {
  return content.empty() ? "" : fmt::format("\n## {}\n\n{}", heading, content);
}

std::string markdown_section(const std::string& heading, const std::string& note, const Table& table) {
  if (table.empty()) return "";
  return markdown_section(
      heading, (note.empty() ? "" : folded_text(escaped_for_markdown(note), kPage) + "\n") + table.markdown());
}

}  // namespace

std::string headline_text(const StudyVerdict& verdict) {
  std::string out = folded_text(verdict.headline, kTerminal);
  if (verdict.environments.size() > 1)
    for (const EnvironmentVerdict& e : verdict.environments)
      out += folded_text(e.environment + ": " + e.headline, kTerminal, "  ", "  ");
  return escaped_for_terminal(out);
}

std::string study_text(const Evidence& evidence, const StudyVerdict& verdict) {
  std::string out = headline_text(verdict);
  std::vector<std::string> wants;
  for (const GoalRow& row : verdict.rows)
    wants.push_back((verdict.environments.size() > 1 ? row.environment + ": " : "") + row.text);
  out += section("If you want", wants);
  out += section("Goals", goal_lines(verdict));
  out += section("Faster, at the price of quality", faster_lines(verdict));
  out += section("What limits it", verdict.limits) + section("Caveats", verdict.caveats);
  if (evidence.baseline >= 0)
    out += section("What was run", settings_table(evidence)) + section("Loss budget, percent", budget_table(evidence)) +
           section("Compute and memory of a rank", compute_table(evidence));
  return escaped_for_terminal(out);
}

std::string study_markdown(const Evidence& evidence, const StudyVerdict& verdict, const ReportSource& source) {
  const HeadlineParts headline = headline_parts(verdict.headline);
  std::string out =
      fmt::format("# {}\n\n**{}**\n", escaped_for_markdown(source.name), escaped_for_markdown(headline.head));
  if (!headline.rest.empty()) out += folded_text(escaped_for_markdown(headline.rest), kPage);
  if (verdict.environments.size() > 1) {
    out += "\n";
    for (const EnvironmentVerdict& e : verdict.environments)
      out +=
          folded_text(fmt::format("**{}**: {}", escaped_for_markdown(e.environment), escaped_for_markdown(e.headline)),
                      kPage, "* ", "  ");
  }
  if (const Table wants = wants_table(evidence, verdict); !wants.empty()) out += "\n" + wants.markdown();
  out += markdown_section("Goals", items(goal_lines(verdict)));
  out += markdown_section("Faster, at the price of quality", items(faster_lines(verdict)));
  out += markdown_section("What limits it", items(verdict.limits));
  out += markdown_section("Caveats", items(verdict.caveats));
  if (evidence.baseline < 0) return out;
  out += markdown_section("What was run", "", settings_table(evidence));
  out += markdown_section("Loss budget", budget_text(evidence), budget_table(evidence));
  out += markdown_section("Compute and memory of a rank", kComputeText, compute_table(evidence));
  out += markdown_section("Evaluations", kEvaluationsText, evaluations_table(evidence));
  const Setting& shown = shown_setting(evidence, verdict);
  return out + markdown_section("Bytes on the wire, MB a step: " + escaped_for_markdown(name_of(shown)),
                                wire_text(shown.wire, shown.row), wire_table(shown.wire));
}

}  // namespace echelon::inline report
