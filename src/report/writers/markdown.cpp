// SPDX-License-Identifier: Apache-2.0
// Markdown for the repository, and the same content as text for a terminal.
#include <fmt/format.h>

#include "base/escape.hpp"
#include "report/writers/writers.hpp"

namespace echelon::inline report {
namespace {

constexpr const char* kReading =
    "Speed-up is samples/s against the study's first row; efficiency is that, divided by the growth in ranks. "
    "Spread: quartiles over the steps of a run, or the range if a row combines several runs. Config: the first digits "
    "of the config hash, and how many other hashes (for example of other seeds) are in the row. `exchange` is the time "
    "that a rank waited for the exchange (its exposed part); exchange hidden is the share of the exchange that "
    "overlapped with other work; arrival skew is the time between the first and the last rank that was ready for it. "
    "Sent per step are the bytes of gradients that all ranks sent, next to those that the formula gives; inside "
    "replicas are the bytes between ranks of split models, of which halos are rows of images. The parts add up to 100 "
    "%.";

}  // namespace

std::string write_text(const ScalingReport& report) {
  constexpr std::size_t kColumns = 120;
  std::string out;
  for (const std::string& answer : report.answers) out += folded_text(answer, kColumns) + "\n";
  for (const Study& study : report.studies) {
    out += folded_text(study.title, kColumns) + folded_text(study.facts, kColumns) + "\n";
    out += rate_table(study).text(kColumns) + "\n" + time_table(study).text(kColumns) + "\n" +
           cost_table(study).text(kColumns);
    for (const std::string& note : study.notes) out += folded_text("note: " + note, kColumns, "", "  ");
    out += "\n";
  }
  for (const std::string& warning : report.warnings) out += folded_text("warning: " + warning, kColumns, "", "  ");
  for (const LeftOut& run : report.left_out)
    out += folded_text(fmt::format("not counted: {} ({}): {}", run.folder, run.state, run.reason), kColumns, "", "  ");
  return escaped_for_terminal(out);
}

std::string write_markdown(const ScalingReport& report, const ReportSource& source) {
  const auto shown = [](const std::string& text) { return escaped_for_markdown(text); };
  std::string out = fmt::format("# {}\n", shown(source.name));
  for (const std::string& answer : report.answers) out += fmt::format("\n**{}**\n", shown(answer));
  for (const std::string& warning : report.warnings) out += fmt::format("\n> Warning: {}\n", shown(warning));
  for (const Study& study : report.studies) {
    out += fmt::format("\n## {}\n\n{}\n\n{}\nWhere a step's time goes:\n\n{}\nWhat it costs:\n\n{}", shown(study.title),
                       shown(study.facts), rate_table(study).markdown(), time_table(study).markdown(),
                       cost_table(study).markdown());
    for (const std::string& note : study.notes) out += fmt::format("\n> {}\n", shown(note));
  }
  if (report.studies.empty()) out += "\nNo finished run.\n";
  if (!report.left_out.empty()) {
    Table table({"not counted", "state", "why"});
    for (const LeftOut& run : report.left_out) table.row({run.folder, run.state, run.reason});
    out += fmt::format("\n## Found but not counted\n\n{}", table.markdown());
  }
  if (!report.studies.empty()) out += fmt::format("\n## How to read it\n\n{}\n", kReading);
  out += "\n## Where it comes from\n\n";
  for (const std::string& line : origin_lines(report, source)) out += fmt::format("- {}\n", shown(line));
  return out;
}

}  // namespace echelon::inline report
