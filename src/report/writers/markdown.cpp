// Markdown for the repository, and the same content as text for a terminal.
#include <fmt/format.h>

#include "report/writers/writers.hpp"

namespace echelon::inline report {
namespace {

constexpr const char* kReading =
    "Speed-up is samples/s against the study's first row; efficiency is that, divided by the growth in ranks. "
    "Spread: quartiles over the steps of a run, or the range where a row is made of several runs. Config: the first "
    "digits of the config hash, and how many other hashes (for example of other seeds) are in the row. `exchange` is "
    "the "
    "time that a rank waited for the exchange (its exposed part); exchange hidden, the share of the exchange that went "
    "on beside other work; arrival skew, the time between the first and the last rank that was ready for it. Sent a "
    "step are the bytes of gradients that all ranks sent, beside those of the price list; inside replicas, the bytes "
    "between ranks of split models, of which halos are rows of images. Sum of the parts: 100 %.";

}  // namespace

std::string write_text(const ScalingReport& report) {
  std::string out;
  for (const Study& study : report.studies) {
    out += fmt::format("{}\n{}\n\n{}\n{}\n{}", study.title, study.facts, rate_table(study).text(),
                       time_table(study).text(), cost_table(study).text());
    for (const std::string& note : study.notes) out += fmt::format("note: {}\n", note);
    out += "\n";
  }
  for (const std::string& warning : report.warnings) out += fmt::format("warning: {}\n", warning);
  for (const LeftOut& run : report.left_out)
    out += fmt::format("not counted: {} ({}): {}\n", run.folder, run.state, run.reason);
  return out;
}

std::string write_markdown(const ScalingReport& report, const ReportSource& source) {
  std::string out = fmt::format("# {}\n", source.name);
  for (const std::string& warning : report.warnings) out += fmt::format("\n> Warning: {}\n", warning);
  for (const Study& study : report.studies) {
    out += fmt::format("\n## {}\n\n{}\n\n{}\nWhere a step's time goes:\n\n{}\nWhat it costs:\n\n{}", study.title,
                       study.facts, rate_table(study).markdown(), time_table(study).markdown(),
                       cost_table(study).markdown());
    for (const std::string& note : study.notes) out += fmt::format("\n> {}\n", note);
  }
  if (report.studies.empty()) out += "\nNo finished run.\n";
  if (!report.left_out.empty()) {
    Table table({"not counted", "state", "why"});
    for (const LeftOut& run : report.left_out) table.row({run.folder, run.state, run.reason});
    out += fmt::format("\n## Found but not counted\n\n{}", table.markdown());
  }
  if (!report.studies.empty()) out += fmt::format("\n## How to read it\n\n{}\n", kReading);
  out += "\n## Where it comes from\n\n";
  for (const std::string& line : origin_lines(report, source)) out += fmt::format("- {}\n", line);
  return out;
}

}  // namespace echelon::inline report
