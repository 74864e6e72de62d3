// SPDX-License-Identifier: Apache-2.0
// One line per row of a study, numbers unrounded, for spreadsheets and plots.
#include <fmt/format.h>

#include <cmath>

#include "report/figures_list.hpp"
#include "report/writers/csv_parts.hpp"
#include "report/writers/writers.hpp"

namespace echelon::inline report {

std::string number_cell(double value) { return std::isfinite(value) ? fmt::format("{:.10g}", value) : ""; }

std::vector<std::pair<std::string, std::string>> row_cells(const ScalingRow& row) {
  std::vector<std::pair<std::string, std::string>> cells;
  const auto add = [&](const std::string& name, std::string cell) { cells.emplace_back(name, std::move(cell)); };
  each(static_cast<const RunFigures&>(row), [&]<class T>(const Figure& figure, T& value) {
    const std::string name = figure.name;
    if constexpr (figures::Is<T, double>) add(name, number_cell(value));
    if constexpr (figures::Is<T, Quartiles>) add(name, number_cell(value.median));
    if constexpr (figures::Is<T, std::vector<double>>) add(name, number_cell(largest(value)));
    if constexpr (figures::Is<T, int> || figures::Is<T, std::int64_t>) add(name, fmt::format("{}", value));
    if constexpr (figures::Is<T, bool>) add(name, value ? "true" : "false");
    if constexpr (figures::Is<T, std::string>)
      if (figure.runs == OverRuns::first && figure.steps == OverSteps::none) add(name, value);
  });
  return cells;
}

namespace {

using Cells = std::vector<std::string>;

const char* kind_text(StudyKind kind) {
  return kind == StudyKind::strong ? "strong" : kind == StudyKind::weak ? "weak" : "single";
}

// The row as pairs of heading and cell.
template <class Add>
void each_column(const Study& study, const ScalingRow& row, const ReportSource& source, const Add& add) {
  add("study", kind_text(study.kind));
  add("title", study.title);
  add("runs", fmt::format("{}", row.attempts));
  add("mesh", row.mesh_text);
  add("coded_as", row.codec_text);
  add("batch_per_replica", row.batch_text);
  add("samples_per_s_low", number_cell(row.rate.low));
  add("samples_per_s_high", number_cell(row.rate.high));
  add("baseline_ranks", study.baseline_ranks > 0 ? fmt::format("{}", study.baseline_ranks) : "");
  add("speed_up", number_cell(row.speed_up));
  add("efficiency", number_cell(row.efficiency));
  for (std::size_t part = 0; part < kTimeParts; ++part)
    add(std::string(time_part_name(part)) + "_percent",
        row.has_split ? fmt::format("{:.1f}", row.percent[part]) : std::string());
  add("test_accuracy_low", number_cell(row.accuracy.low));
  add("test_accuracy_high", number_cell(row.accuracy.high));
  for (const auto& [name, cell] : row_cells(row)) add(name, cell);
  add("report_date", source.date);
  add("report_commit", source.commit);
}

}  // namespace

std::string write_csv(const ScalingReport& report, const ReportSource& source) {
  Cells header;
  each_column({}, {}, source, [&](const std::string& name, const std::string&) { header.push_back(name); });
  Table table(header);
  for (const Study& study : report.studies)
    for (const ScalingRow& row : study.rows) {
      Cells cells;
      each_column(study, row, source, [&](const std::string&, const std::string& cell) { cells.push_back(cell); });
      table.row(std::move(cells));
    }
  return table.csv();
}

}  // namespace echelon::inline report
