// One line a row of a study, numbers unrounded, for spreadsheets and plots.
#include <fmt/format.h>

#include <cmath>

#include "report/writers/writers.hpp"

namespace echelon {
namespace {

std::string number(double value) { return std::isnan(value) ? "" : fmt::format("{:.10g}", value); }

const char* kind_text(StudyKind kind) {
  return kind == StudyKind::strong ? "strong" : kind == StudyKind::weak ? "weak" : "single";
}

}  // namespace

std::string write_csv(const ScalingReport& report, const ReportSource& source) {
  std::vector<std::string> header = {"study",
                                     "title",
                                     "paced",
                                     "name",
                                     "device",
                                     "ranks",
                                     "servers",
                                     "hosts",
                                     "threads",
                                     "runs",
                                     "global_batch",
                                     "batch_per_replica",
                                     "samples_per_s",
                                     "samples_per_s_low",
                                     "samples_per_s_high",
                                     "baseline_ranks",
                                     "speed_up",
                                     "efficiency",
                                     "step_s"};
  for (const char* part : kTimeParts) header.push_back(std::string(part) + "_percent");
  header.insert(header.end(), {"wire_bytes_per_step", "formula_bytes_per_step", "messages_per_step", "train_loss",
                               "test_accuracy", "test_accuracy_low", "test_accuracy_high", "peak_rss_mb",
                               "device_peak_mb", "start_to_first_step_s", "report_date", "report_commit"});
  Table table(header);
  for (const Study& study : report.studies)
    for (const ScalingRow& row : study.rows) {
      std::vector<std::string> cells = {kind_text(study.kind),
                                        study.title,
                                        row.paced ? "true" : "false",
                                        row.name,
                                        row.device,
                                        fmt::format("{}", row.ranks),
                                        fmt::format("{}", row.servers),
                                        fmt::format("{}", row.hosts),
                                        fmt::format("{}", row.threads),
                                        fmt::format("{}", row.attempts),
                                        fmt::format("{}", row.global_batch),
                                        row.batch_per_replica,
                                        number(row.samples_per_s.median),
                                        number(row.samples_per_s.low),
                                        number(row.samples_per_s.high),
                                        study.baseline_ranks > 0 ? fmt::format("{}", study.baseline_ranks) : "",
                                        number(row.speed_up),
                                        number(row.efficiency),
                                        number(row.step_s)};
      for (const double percent : row.percent) cells.push_back(row.has_split ? fmt::format("{:.1f}", percent) : "");
      for (const double value :
           {row.wire_bytes_per_step, row.formula_bytes_per_step, row.messages_per_step, row.train_loss,
            row.test_accuracy.median, row.test_accuracy.low, row.test_accuracy.high, row.peak_rss_mb,
            row.device_peak_mb, row.start_to_first_step_s})
        cells.push_back(number(value));
      cells.insert(cells.end(), {source.date, source.commit});
      table.row(std::move(cells));
    }
  return table.csv();
}

}  // namespace echelon
