// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string_view>

#include "base/atomic_file.hpp"
#include "base/text.hpp"
#include "report/writers/writers.hpp"

namespace echelon::inline report {
namespace {

std::string or_dash(double value, std::string text) { return std::isnan(value) ? "-" : std::move(text); }

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

// Whether the rows of the study differ in this value.
template <class Get>
bool differ(const Study& study, const Get& get) {
  return std::any_of(study.rows.begin(), study.rows.end(),
                     [&](const ScalingRow& row) { return get(row) != get(study.rows.front()); });
}
template <class Get>
bool any_above_0(const Study& study, const Get& get) {
  return std::any_of(study.rows.begin(), study.rows.end(), [&](const ScalingRow& row) { return get(row) > 0; });
}

using Cells = std::vector<std::string>;
struct Column {
  std::string heading;
  std::string (*cell)(const ScalingRow& row);
};

std::string ranks_text(const ScalingRow& row) {
  return row.servers == 0 ? fmt::format("{}", row.ranks)
                          : counted(row.ranks, "worker") + " + " + counted(row.servers, "server");
}

// The first columns of every table: what the row is, with marks for paced and shaped runs.
std::vector<Column> identity(const Study& study) {
  std::vector<Column> columns;
  if (study.kind == StudyKind::single) columns.push_back({"run", [](const ScalingRow& row) { return row.name; }});
  columns.push_back({"ranks", ranks_text});
  columns.push_back({"mesh", [](const ScalingRow& row) { return row.mesh_text; }});
  if (differ(study, exchange_name))
    columns.push_back({"exchange", [](const ScalingRow& row) { return exchange_name(row); }});
  columns.push_back({"codec", [](const ScalingRow& row) { return row.codec_text; }});
  columns.push_back(
      {"device", [](const ScalingRow& row) {
         return row.paced ? std::string("paced") : row.computes_at_pace() ? row.device + " at a pace" : row.device;
       }});
  if (std::any_of(study.rows.begin(), study.rows.end(), [](const ScalingRow& row) { return !row.shaped.empty(); }))
    columns.push_back({"network", [](const ScalingRow& row) { return shaped_cell(row); }});
  return columns;
}

Table table_of(const Study& study, std::vector<Column> columns, const std::vector<Column>& more) {
  columns.insert(columns.end(), more.begin(), more.end());
  Cells header;
  for (const Column& column : columns) header.push_back(column.heading);
  Table table(header);
  for (const ScalingRow& row : study.rows) {
    Cells cells;
    for (const Column& column : columns) cells.push_back(column.cell(row));
    table.row(std::move(cells));
  }
  return table;
}

std::string bytes_or_dash(double bytes) { return or_dash(bytes, bytes_text(bytes)); }
std::string seconds_or_dash(double seconds) { return or_dash(seconds, seconds_text(seconds)); }

void add_distinct(std::vector<std::string>& lines, const std::string& what, const std::set<std::string>& values) {
  std::string out;
  for (const std::string& value : values)
    if (!value.empty()) out += (out.empty() ? "" : "; ") + value;
  if (!out.empty()) lines.push_back(what + ": " + out);
}

}  // namespace

std::string shaped_cell(const RunFigures& run) { return run.shaped.empty() ? "real" : "shaped: " + run.shaped; }

bool has_dropped(const RunFigures& run) { return run.updates_dropped > 0 || largest(run.gradients_dropped) > 0; }

std::string dropped_text(const RunFigures& run) {
  const auto count = [](double value) { return count_text(static_cast<std::int64_t>(std::isnan(value) ? 0 : value)); };
  if (run.updates_applied > 0 || run.updates_dropped > 0)
    return fmt::format("{} of {} updates", count(run.updates_dropped),
                       count(run.updates_dropped + (std::isnan(run.updates_applied) ? 0 : run.updates_applied)));
  const double gradients = largest(run.gradients_dropped);
  if (std::isnan(gradients)) return "-";
  if (gradients == 0) return "0";
  return fmt::format("{} of a rank, {}", counted(static_cast<std::int64_t>(gradients), "gradient"),
                     counted(static_cast<std::int64_t>(largest(run.samples_dropped)), "sample"));
}

Table rate_table(const Study& study) {
  using Row = ScalingRow;
  std::vector<Column> more = {{"config", [](const Row& row) { return row.hash; }},
                              {"hosts", [](const Row& row) { return fmt::format("{}", row.hosts); }},
                              {"threads", [](const Row& row) { return fmt::format("{}", row.threads); }},
                              {"batch", [](const Row& row) { return fmt::format("{}", row.global_batch); }},
                              {"a replica", [](const Row& row) { return row.batch_text; }},
                              {"samples/s", [](const Row& row) { return rate_text(row.rate.median); }},
                              {"spread", [](const Row& row) { return spread_text(row.rate); }}};
  if (study.kind != StudyKind::single) {
    more.push_back(
        {"speed-up", [](const Row& row) { return or_dash(row.speed_up, fmt::format("{:.2f}x", row.speed_up)); }});
    more.push_back({"efficiency", [](const Row& row) {
                      return or_dash(row.efficiency, fmt::format("{:.1f} %", 100 * row.efficiency));
                    }});
  }
  more.push_back(
      {"train loss", [](const Row& row) { return or_dash(row.train_loss, fmt::format("{:.4f}", row.train_loss)); }});
  more.push_back({"test accuracy", [](const Row& row) { return accuracy_text(row.accuracy); }});
  if (any_above_0(study, [](const Row& row) { return row.updates_applied; })) {
    more.push_back({"oscillation", [](const Row& row) {
                      return or_dash(row.loss_oscillation, fmt::format("{:.3f}", row.loss_oscillation));
                    }});
    more.push_back({"staleness", [](const Row& row) {
                      return or_dash(row.staleness_mean,
                                     fmt::format("{:.2f}, at most {:.0f}", row.staleness_mean, row.staleness_largest));
                    }});
  }
  if (any_above_0(study, [](const Row& row) { return has_dropped(row); }))
    more.push_back({"dropped", [](const Row& row) { return dropped_text(row); }});
  more.push_back({"runs", [](const Row& row) { return fmt::format("{}", row.attempts); }});
  return table_of(study, identity(study), more);
}

Table time_table(const Study& study) {
  const std::vector<Column> columns = identity(study);
  const bool exchanged = any_above_0(study, [](const ScalingRow& row) { return row.hidden_share(); }) ||
                         any_above_0(study, [](const ScalingRow& row) { return row.arrival_skew_s; });
  std::vector<std::size_t> parts;
  for (std::size_t part = 0; part < kTimeParts; ++part)
    if (!is_seldom(part) || any_above_0(study, [&](const ScalingRow& row) { return row.percent[part]; }))
      parts.push_back(part);
  Cells header;
  for (const Column& column : columns) header.push_back(column.heading);
  header.push_back("step");
  for (const std::size_t part : parts) header.push_back(std::string(time_part_name(part)) + " %");
  header.push_back("sum %");
  if (exchanged) header.insert(header.end(), {"exchange hidden", "arrival skew"});
  Table table(header);
  for (const ScalingRow& row : study.rows) {
    Cells cells;
    for (const Column& column : columns) cells.push_back(column.cell(row));
    const auto percent = [&](double value) { return row.has_split ? fmt::format("{:.1f}", value) : "-"; };
    cells.push_back(seconds_or_dash(row.step_s.median));
    for (const std::size_t part : parts) cells.push_back(percent(row.percent[part]));
    cells.push_back(percent(std::accumulate(row.percent.begin(), row.percent.end(), 0.0)));
    if (exchanged) {
      const double hidden = row.hidden_share();
      cells.push_back(or_dash(hidden, fmt::format("{:.0f} %", 100 * hidden)));
      cells.push_back(row.ranks > 1 ? seconds_or_dash(row.arrival_skew_s) : "-");
    }
    table.row(std::move(cells));
  }
  return table;
}

Table cost_table(const Study& study) {
  using Row = ScalingRow;
  std::vector<Column> more = {{"sent per step", [](const Row& row) { return bytes_or_dash(row.wire_bytes_per_step); }},
                              {"by formula", [](const Row& row) { return bytes_or_dash(row.formula_bytes_per_step); }},
                              {"messages", [](const Row& row) {
                                 return or_dash(row.messages_per_step, fmt::format("{:.0f}", row.messages_per_step));
                               }}};
  if (any_above_0(study, [](const Row& row) { return row.down_bytes_per_step; }))
    more.push_back({"from servers", [](const Row& row) { return bytes_or_dash(row.down_bytes_per_step); }});
  if (any_above_0(study, [](const Row& row) { return row.split_bytes_per_step; }))
    more.push_back({"inside replicas", [](const Row& row) { return bytes_or_dash(row.split_bytes_per_step); }});
  if (any_above_0(study, [](const Row& row) { return row.halo_bytes_per_step; }))
    more.push_back({"halos", [](const Row& row) { return bytes_or_dash(row.halo_bytes_per_step); }});
  more.push_back({"host memory", [](const Row& row) { return memory_text(largest(row.peak_rss_mb)); }});
  more.push_back({"device memory", [](const Row& row) { return memory_text(largest(row.device_peak_mb)); }});
  more.push_back({"first step after", [](const Row& row) { return seconds_or_dash(row.start_to_first_step_s); }});
  return table_of(study, identity(study), more);
}

std::vector<std::string> origin_lines(const ScalingReport& report, const ReportSource& source) {
  std::set<std::string> builds, devices, hosts, mpi, commands, folders;
  for (const RunRecord& run : report.counted) {
    builds.insert(run.provenance.git_hash);
    devices.insert(run.device_text);
    hosts.insert(run.provenance.hosts.begin(), run.provenance.hosts.end());
    mpi.insert(run.provenance.mpi);
    commands.insert(run.provenance.command_line);
    folders.insert(
        fmt::format("{}{}{}", run.folder, run.provenance.started.empty() ? "" : " of ", run.provenance.started));
  }
  std::vector<std::string> lines = {
      fmt::format("report: {} UTC by echelon {} ({}): {}", source.date, source.version, source.commit, source.command)};
  add_distinct(lines, "runs' build", builds);
  add_distinct(lines, "devices", devices);
  add_distinct(lines, "hosts", hosts);
  add_distinct(lines, "MPI", mpi);
  add_distinct(lines, "commands", commands);
  add_distinct(lines, kOriginRuns, folders);
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

}  // namespace echelon::inline report
