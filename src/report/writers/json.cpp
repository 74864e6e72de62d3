// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/figures_json.hpp"
#include "report/writers/json_parts.hpp"
#include "report/writers/writers.hpp"

namespace echelon::inline report {

using nlohmann::ordered_json;

ordered_json number_json(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }

ordered_json spread_json(const Spread& spread) {
  return {{"median", number_json(spread.median)}, {"low", number_json(spread.low)}, {"high", number_json(spread.high)}};
}

ordered_json row_json(const ScalingRow& row) {
  ordered_json out = to_json(static_cast<const RunFigures&>(row));
  out.erase("time_split_s");
  out.erase("slow_ranks");
  out.erase("weights_checksum");
  out["runs"] = row.attempts;
  out["mesh_text"] = row.mesh_text;
  out["coded_as"] = row.codec_text;
  out["samples_per_s"] = spread_json(row.rate);
  out["test_accuracy"] = spread_json(row.accuracy);
  out["speed_up"] = number_json(row.speed_up);
  out["efficiency"] = number_json(row.efficiency);
  out["time_percent"] = nullptr;
  if (row.has_split)
    for (std::size_t i = 0; i < kTimeParts; ++i) out["time_percent"][time_part_name(i)] = row.percent[i];
  return out;
}

namespace {

ordered_json rows_json(const Study& study) {
  const char* kind = study.kind == StudyKind::strong ? "strong" : study.kind == StudyKind::weak ? "weak" : "single";
  ordered_json out = {{"kind", kind},
                      {"title", study.title},
                      {"facts", study.facts},
                      {"paced", study.paced},
                      {"baseline_ranks", study.baseline_ranks > 0 ? ordered_json(study.baseline_ranks) : nullptr},
                      {"rows", ordered_json::array()},
                      {"notes", study.notes}};
  for (const ScalingRow& row : study.rows) out["rows"].push_back(row_json(row));
  return out;
}

}  // namespace

std::string write_json(const ScalingReport& report, const ReportSource& source) {
  ordered_json out = {{"format", "echelon-scaling"},
                      {"version", 2},
                      {"name", source.name},
                      {"date", source.date},
                      {"command", source.command},
                      {"echelon", {{"version", source.version}, {"commit", source.commit}}},
                      {"warnings", report.warnings},
                      {"studies", ordered_json::array()},
                      {"not_counted", ordered_json::array()},
                      {"runs", ordered_json::array()}};
  for (const Study& study : report.studies) out["studies"].push_back(rows_json(study));
  for (const LeftOut& run : report.left_out)
    out["not_counted"].push_back({{"folder", run.folder}, {"state", run.state}, {"reason", run.reason}});
  for (const RunRecord& run : report.counted)
    out["runs"].push_back({{"folder", run.folder},
                           {"config_hash", run.config_hash},
                           {"commit", run.provenance.git_hash},
                           {"started", run.provenance.started},
                           {"command", run.provenance.command_line},
                           {"device", run.device_text},
                           {"hosts", run.provenance.hosts},
                           {"mpi", run.provenance.mpi},
                           {"seed", run.provenance.seed},
                           {"job_id", run.provenance.job_id}});
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace echelon::inline report
