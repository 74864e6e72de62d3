#include <cmath>
#include <nlohmann/json.hpp>

#include "report/writers/writers.hpp"

namespace echelon {
namespace {

using nlohmann::ordered_json;

ordered_json number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }

ordered_json spread(const Spread& value) {
  return {{"median", number(value.median)}, {"low", number(value.low)}, {"high", number(value.high)}};
}

ordered_json row_json(const ScalingRow& row) {
  ordered_json parts = nullptr;
  if (row.has_split) {
    parts = ordered_json::object();
    for (std::size_t i = 0; i < kTimeParts.size(); ++i) parts[kTimeParts[i]] = row.percent[i];
  }
  return {{"name", row.name},
          {"ranks", row.ranks},
          {"servers", row.servers},
          {"hosts", row.hosts},
          {"threads", row.threads},
          {"device", row.device},
          {"paced", row.paced},
          {"runs", row.attempts},
          {"global_batch", row.global_batch},
          {"batch_per_replica", row.batch_per_replica},
          {"samples_per_s", spread(row.samples_per_s)},
          {"speed_up", number(row.speed_up)},
          {"efficiency", number(row.efficiency)},
          {"step_s", number(row.step_s)},
          {"time_percent", parts},
          {"wire_bytes_per_step", number(row.wire_bytes_per_step)},
          {"formula_bytes_per_step", number(row.formula_bytes_per_step)},
          {"messages_per_step", number(row.messages_per_step)},
          {"train_loss", number(row.train_loss)},
          {"test_accuracy", spread(row.test_accuracy)},
          {"peak_rss_mb", number(row.peak_rss_mb)},
          {"device_peak_mb", number(row.device_peak_mb)},
          {"start_to_first_step_s", number(row.start_to_first_step_s)}};
}

ordered_json study_json(const Study& study) {
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
                      {"version", 1},
                      {"name", source.name},
                      {"date", source.date},
                      {"command", source.command},
                      {"echelon", {{"version", source.version}, {"commit", source.commit}}},
                      {"warnings", report.warnings},
                      {"studies", ordered_json::array()},
                      {"not_counted", ordered_json::array()},
                      {"runs", ordered_json::array()}};
  for (const Study& study : report.studies) out["studies"].push_back(study_json(study));
  for (const LeftOut& run : report.left_out)
    out["not_counted"].push_back({{"folder", run.folder}, {"state", run.state}, {"reason", run.reason}});
  for (const RunRecord& run : report.counted)
    out["runs"].push_back({{"folder", run.folder},
                           {"config_hash", run.config_hash},
                           {"commit", run.commit},
                           {"started", run.started},
                           {"command", run.command},
                           {"device", run.device_text},
                           {"hosts", run.host_names},
                           {"mpi", run.mpi},
                           {"seed", run.seed},
                           {"job_id", run.job_id}});
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace echelon
