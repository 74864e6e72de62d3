#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/atomic_file.hpp"
#include "base/text.hpp"
#include "report/writers/writers.hpp"

namespace echelon {
namespace {

std::string or_dash(double value, std::string text) { return std::isnan(value) ? "-" : std::move(text); }

std::string rate_text(double rate) {
  if (std::isnan(rate)) return "-";
  return rate < 100 ? fmt::format("{:.1f}", rate) : count_text(std::llround(rate));
}

std::string spread_text(const Spread& spread) {
  return std::isnan(spread.low) || std::isnan(spread.high) ? "-"
                                                           : rate_text(spread.low) + " to " + rate_text(spread.high);
}

std::string accuracy_text(const Spread& spread) {
  if (std::isnan(spread.median)) return "-";
  std::string out = fmt::format("{:.2f} %", 100 * spread.median);
  if (spread.high - spread.low > 5e-5) out += fmt::format(" ({:.2f} to {:.2f})", 100 * spread.low, 100 * spread.high);
  return out;
}

std::string memory_text(double mb) { return or_dash(mb, bytes_text(mb * 1024 * 1024)); }

// Every table begins with what its rows are, paced ones marked.
std::vector<std::string> header_of(const Study& study, const std::vector<std::string>& more) {
  std::vector<std::string> header = {"ranks", "device"};
  if (study.kind == StudyKind::single) header.insert(header.begin(), "run");
  header.insert(header.end(), more.begin(), more.end());
  return header;
}

std::vector<std::string> cells_of(const Study& study, const ScalingRow& row) {
  const std::string ranks = row.servers == 0 ? fmt::format("{}", row.ranks)
                                             : counted(row.ranks, "worker") + " + " + counted(row.servers, "server");
  std::vector<std::string> cells = {ranks, row.paced ? "paced" : row.device};
  if (study.kind == StudyKind::single) cells.insert(cells.begin(), row.name);
  return cells;
}

void add_distinct(std::vector<std::string>& lines, const std::string& what, const std::set<std::string>& values) {
  std::string out;
  for (const std::string& value : values)
    if (!value.empty()) out += (out.empty() ? "" : "; ") + value;
  if (!out.empty()) lines.push_back(what + ": " + out);
}

}  // namespace

Table rate_table(const Study& study) {
  const bool single = study.kind == StudyKind::single;
  std::vector<std::string> more = {"hosts", "threads", "batch", "a rank", "samples/s", "spread"};
  if (!single) more.insert(more.end(), {"speed-up", "efficiency"});
  more.insert(more.end(), {"train loss", "test accuracy", "runs"});
  Table table(header_of(study, more));
  for (const ScalingRow& row : study.rows) {
    std::vector<std::string> cells = cells_of(study, row);
    cells.insert(cells.end(),
                 {fmt::format("{}", row.hosts), fmt::format("{}", row.threads), fmt::format("{}", row.global_batch),
                  row.batch_per_replica, rate_text(row.samples_per_s.median), spread_text(row.samples_per_s)});
    if (!single)
      cells.insert(cells.end(), {or_dash(row.speed_up, fmt::format("{:.2f}x", row.speed_up)),
                                 or_dash(row.efficiency, fmt::format("{:.1f} %", 100 * row.efficiency))});
    cells.insert(cells.end(), {or_dash(row.train_loss, fmt::format("{:.4f}", row.train_loss)),
                               accuracy_text(row.test_accuracy), fmt::format("{}", row.attempts)});
    table.row(std::move(cells));
  }
  return table;
}

// `split` is for studies with split models alone.
bool is_shown(const Study& study, std::size_t part) {
  return std::string_view(kTimeParts[part]) != "split" ||
         std::any_of(study.rows.begin(), study.rows.end(),
                     [&](const ScalingRow& row) { return row.percent[part] > 0; });
}

Table time_table(const Study& study) {
  std::vector<std::string> more = {"step"};
  for (std::size_t part = 0; part < kTimeParts.size(); ++part)
    if (is_shown(study, part)) more.push_back(std::string(kTimeParts[part]) + " %");
  more.push_back("sum %");
  Table table(header_of(study, more));
  for (const ScalingRow& row : study.rows) {
    std::vector<std::string> cells = cells_of(study, row);
    cells.push_back(or_dash(row.step_s, seconds_text(row.step_s)));
    double sum = 0;
    for (std::size_t part = 0; part < row.percent.size(); ++part) {
      if (is_shown(study, part)) cells.push_back(row.has_split ? fmt::format("{:.1f}", row.percent[part]) : "-");
      sum += row.percent[part];
    }
    cells.push_back(row.has_split ? fmt::format("{:.1f}", sum) : "-");
    table.row(std::move(cells));
  }
  return table;
}

Table cost_table(const Study& study) {
  Table table(header_of(
      study, {"sent a step", "by formula", "messages", "memory a rank", "of the device", "first step after"}));
  for (const ScalingRow& row : study.rows) {
    std::vector<std::string> cells = cells_of(study, row);
    cells.insert(cells.end(), {or_dash(row.wire_bytes_per_step, bytes_text(row.wire_bytes_per_step)),
                               or_dash(row.formula_bytes_per_step, bytes_text(row.formula_bytes_per_step)),
                               or_dash(row.messages_per_step, fmt::format("{:.0f}", row.messages_per_step)),
                               memory_text(row.peak_rss_mb), memory_text(row.device_peak_mb),
                               or_dash(row.start_to_first_step_s, seconds_text(row.start_to_first_step_s))});
    table.row(std::move(cells));
  }
  return table;
}

std::vector<std::string> origin_lines(const ScalingReport& report, const ReportSource& source) {
  std::set<std::string> builds, devices, hosts, mpi, commands, folders;
  for (const RunRecord& run : report.counted) {
    builds.insert(run.commit);
    devices.insert(run.device_text);
    hosts.insert(run.host_names.begin(), run.host_names.end());
    mpi.insert(run.mpi);
    commands.insert(run.command);
    folders.insert(fmt::format("{}{}{}", run.folder, run.started.empty() ? "" : " of ", run.started));
  }
  std::vector<std::string> lines = {
      fmt::format("report: {} UTC by echelon {} ({}): {}", source.date, source.version, source.commit, source.command)};
  add_distinct(lines, "runs' build", builds);
  add_distinct(lines, "devices", devices);
  add_distinct(lines, "hosts", hosts);
  add_distinct(lines, "MPI", mpi);
  add_distinct(lines, "commands", commands);
  add_distinct(lines, "runs", folders);
  return lines;
}

std::vector<std::string> write_report(const ScalingReport& report, const ReportSource& source,
                                      const std::string& folder) {
  make_folders(folder);
  const std::string base = folder + "/" + source.name;
  write_file_whole(base + ".md", write_markdown(report, source));
  write_file_whole(base + ".csv", write_csv(report, source));
  write_file_whole(base + ".json", write_json(report, source));
  return {base + ".md", base + ".csv", base + ".json"};
}

}  // namespace echelon
