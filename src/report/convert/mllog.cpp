// SPDX-License-Identifier: Apache-2.0
#include "report/convert/mllog.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "report/convert/timeline.hpp"

namespace echelon::inline report {
namespace {

using nlohmann::ordered_json;

class Log {
 public:
  void point(double at_s, const char* key, const ordered_json& value, const ordered_json& more = {}) {
    add(at_s, "POINT_IN_TIME", key, value, more);
  }
  void start(double at_s, const char* key, const ordered_json& more = {}) {
    add(at_s, "INTERVAL_START", key, nullptr, more);
  }
  void stop(double at_s, const char* key, const ordered_json& more = {}) {
    add(at_s, "INTERVAL_END", key, nullptr, more);
  }
  std::string text() const { return text_; }

 private:
  void add(double at_s, const char* type, const char* key, const ordered_json& value, const ordered_json& more) {
    ordered_json metadata = {{"file", "metrics.jsonl"}, {"lineno", 0}};
    if (more.is_object()) metadata.update(more);
    const ordered_json line = {{"namespace", ""},    {"time_ms", static_cast<std::int64_t>(std::llround(1000 * at_s))},
                               {"event_type", type}, {"key", key},
                               {"value", value},     {"metadata", metadata}};
    text_ += ":::MLLOG " + line.dump(-1, ' ', true, ordered_json::error_handler_t::replace) + "\n";
  }
  std::string text_;
};

}  // namespace

std::string mllog_lines(const RunRecord& run, const MetricsRows& rows) {
  const Timeline timeline(run, rows);
  Log log;
  log.point(timeline.start_s(), "submission_benchmark", run.model);
  log.point(timeline.start_s(), "submission_division", "open");
  log.start(timeline.start_s(), "init_start");
  log.point(timeline.start_s(), "seed", run.provenance.seed);
  log.point(timeline.start_s(), "global_batch_size", run.global_batch);
  log.point(timeline.start_s(), "gradient_accumulation_steps", run.accumulation);
  log.stop(timeline.first_step_s(), "init_stop");
  log.start(timeline.first_step_s(), "run_start");
  double begin_s = timeline.first_step_s();
  for (const EpochFigures& epoch : rows.epochs) {
    const ordered_json number = {{"epoch_num", epoch.epoch}};
    log.start(begin_s, "epoch_start", number);
    begin_s = timeline.at_step(epoch.step);
    log.stop(begin_s, "epoch_stop", number);
    if (std::isnan(epoch.test_accuracy)) continue;
    log.start(begin_s, "eval_start", number);
    log.point(begin_s, "eval_accuracy", epoch.test_accuracy, number);
    log.stop(begin_s, "eval_stop", number);
  }
  if (run.samples_per_s.median > 0)
    log.point(timeline.end_s(), "throughput", run.samples_per_s.median, {{"unit", "samples/s"}});
  log.stop(timeline.end_s(), "run_stop", {{"status", run.state == "finished" ? "success" : "aborted"}});
  return log.text();
}

std::vector<std::string> write_mllog(const std::vector<RunRecord>& runs, const std::string& folder) {
  std::vector<std::string> paths;
  make_folders(folder);
  for (const RunRecord& run : runs) {
    if (!std::filesystem::exists(run.folder + "/metrics.jsonl")) continue;
    const std::string path = fmt::format("{}/result_{}.txt", folder, paths.size());
    write_file_whole(path, mllog_lines(run, read_metrics(run.folder)));
    paths.push_back(path);
  }
  return paths;
}

}  // namespace echelon::inline report
