// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "config/parse.hpp"
#include "config/traits/codecs.hpp"
#include "report/aside.hpp"
#include "report/figures_json.hpp"
#include "report/record.hpp"

namespace echelon::inline report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json read_json(const std::string& path) {
  try {
    json value = json::parse(read_file_whole(path));
    if (!value.is_object()) throw DataError(fmt::format("{}: expected a JSON object", path));
    return value;
  } catch (const json::exception& error) {
    throw DataError(fmt::format("{}: is not complete JSON: {}", path, error.what()));
  }
}

void take_summary(const json& summary, const std::string& path, RunRecord& run) {
  if (summary.value("format", "") != "echelon-summary" || summary.value("version", 0) != 2)
    throw DataError(fmt::format("{}: is not a summary of version 2 (format \"echelon-summary\")", path));
  run.has_summary = true;
  take_figures(summary, run);
  run.provenance = provenance_of(summary.value("provenance", json::object()));
  if (run.ranks < 1) throw DataError(fmt::format("{}: ranks = {}, but a run has at least 1", path, run.ranks));
}

std::string codec_text(const Config& config) {
  const ExchangeConfig& exchange = config.exchange;
  std::string more;
  const auto add = [&](const std::string& words) { more += (more.empty() ? " (" : ", ") + words; };
  const CodecTraits* codec = find_traits(kCodecs, exchange.codec);
  if (codec && codec->reads.contains("tau") && exchange.tau > 0)
    add(fmt::format("tau {}", exchange.tau));
  else if (codec && codec->reads.contains("density"))
    add(fmt::format("density {}", exchange.density));
  if (exchange.code_sums) add("sums coded once more");
  if (!exchange.error_feedback) add("no error feedback");
  if (config.optimiser.momentum_before_coding) add("momentum before coding");
  if (exchange.codec_warmup_steps > 0) add(fmt::format("after {}", counted(exchange.codec_warmup_steps, "step")));
  return exchange.codec + (more.empty() ? "" : more + ")");
}

// Names only splits by more than 1, and other settings that change how they run.
std::string mesh_text(const MeshShape& mesh, const ParallelConfig& parallel) {
  std::string text = fmt::format("data {}", mesh.data);
  if (mesh.pipeline > 1) text += fmt::format(" x pipeline {} ({})", mesh.pipeline, parallel.schedule);
  if (mesh.tensor > 1) text += fmt::format(" x tensor {}", mesh.tensor);
  if (mesh.space > 1) text += fmt::format(" x space {}", mesh.space);
  if (parallel.time_chunks > 1) text += fmt::format(", {} time chunks", parallel.time_chunks);
  return text;
}

// `group`: hash of the config without the keys that a scaling study varies. `experiment`: the hash without those of
// [exchange] as well.
void take_config(const std::string& path, RunRecord& run) {
  const std::string place = fmt::format("{} {}", run.device,
                                        run.paced                ? "paced"
                                        : run.computes_at_pace() ? "at a pace"
                                                                 : "real");
  run.group = run.experiment = run.config_hash + " " + place;
  run.mesh_text = mesh_text(run.mesh, {});
  if (!fs::exists(path)) return;
  Config config = parse_config(read_file_whole(path), path);
  run.config = std::make_shared<const Config>(config);
  run.codec = config.exchange.codec;
  run.codec_text = codec_text(config);
  run.mesh_text = mesh_text(run.mesh, config.parallel);
  config.seed = 0;
  config.batch.global = 1;
  config.batch.scale_with_replicas = false;
  config.batch.shares.clear();
  run.group = hex64(config_hash(config)) + " " + place;
  ExchangeConfig plain;
  plain.strategy = config.exchange.strategy;
  config.exchange = plain;
  run.experiment = fmt::format("{} {} batch {}", hex64(config_hash(config)), place, run.global_batch);
}

bool is_attempt(const fs::path& folder) {
  return fs::exists(folder / "summary.json") || fs::exists(folder / "status.json");
}

void collect(const fs::path& folder, std::set<std::string>& found, int depth) {
  if (is_attempt(folder)) {
    found.insert(fs::weakly_canonical(folder).string());
    return;
  }
  if (depth == 0) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && entry.path().filename() != "checkpoints") collect(entry.path(), found, depth - 1);
}

// Makes the path relative to the working directory if it is below it.
std::string shown(const std::string& path) {
  const std::string relative = fs::path(path).lexically_relative(fs::current_path()).string();
  return relative.empty() || relative.starts_with("..") ? path : relative;
}

}  // namespace

namespace {

// Takes the newest evaluation by another job if the run itself made none.
void take_aside(const std::string& folder, RunRecord& run) {
  if (!std::isnan(run.test_loss) || !run.has_summary) return;
  for (const AsideEvaluation& aside : read_aside(fs::path(folder).parent_path().string())) {
    const EpochFigures& f = aside.figures;
    if (f.step > run.steps) break;
    run.test_loss = f.test_loss;
    run.test_accuracy = f.test_accuracy;
    run.test_top5_accuracy = f.test_top5_accuracy;
    run.test_macro_f1 = f.test_macro_f1;
    run.test_mean_iou = f.test_mean_iou;
    run.test_auc = f.test_auc;
    run.test_mae = f.test_mae;
    run.test_r2 = f.test_r2;
    run.test_recall = f.test_recall;
    run.test_precision = f.test_precision;
    run.test_f1 = f.test_f1;
    run.test_iou = f.test_iou;
    run.test_perplexity = f.test_perplexity;
  }
}

}  // namespace

RunRecord read_run(const std::string& folder) {
  RunRecord run;
  run.folder = folder;
  const std::string summary = folder + "/summary.json", status = folder + "/status.json";
  try {
    if (const auto value = read_status(folder)) {
      run.state = value->state;
      run.reason = value->reason;
      run.provenance = value->provenance;
    } else if (fs::exists(status)) {
      throw DataError(fmt::format("{}: is not a complete status of an attempt", status));
    }
    if (fs::exists(summary)) take_summary(read_json(summary), summary, run);
  } catch (const json::exception& error) {
    throw DataError(
        fmt::format("{}: a field has the wrong type: {}", run.has_summary ? summary : folder, error.what()));
  }
  take_aside(folder, run);
  take_config(folder + "/config.toml", run);
  return run;
}

std::string why_uncounted(const RunRecord& run) {
  if (!run.has_summary) return run.reason.empty() ? "no summary was written" : run.reason;
  if (run.state != "finished") return run.reason.empty() ? "it did not finish" : run.reason;
  if (std::isnan(run.samples_per_s.median) || run.samples_per_s.median <= 0) return "no step of this attempt was timed";
  return {};
}

namespace {

// The attempts that a JSON report names, relative to the working directory or beside the report.
std::set<std::string> attempts_of_report(const std::string& path) {
  std::set<std::string> attempts;
  std::vector<std::string> missing;
  try {
    const json report = read_json(path);
    if (!report.is_object() || report.value("format", "") != "echelon-scaling")
      throw DataError(fmt::format("{}: is not a report; expected the NAME.json of `echelon report`", path));
    for (const json& run : report.at("runs")) {
      const std::string folder = run.at("folder");
      const std::string beside = (fs::path(path).parent_path() / folder).string();
      const std::string& found = fs::is_directory(folder) ? folder : beside;
      if (fs::is_directory(found))
        attempts.insert(fs::weakly_canonical(found).string());
      else
        missing.push_back(folder);
    }
  } catch (const json::exception& error) {
    throw DataError(fmt::format("{}: {}", path, error.what()));
  }
  if (!missing.empty())
    throw DataError(fmt::format(
        "{}: {} of its runs were not found, such as {}; a report is read together with the folders of its runs", path,
        missing.size(), missing.front()));
  if (attempts.empty()) throw DataError(fmt::format("{}: the report holds no runs", path));
  return attempts;
}

}  // namespace

std::vector<RunRecord> read_runs(const std::vector<std::string>& folders) {
  std::set<std::string> found;
  for (const std::string& folder : folders) {
    if (folder.ends_with(".json") && fs::is_regular_file(folder)) {
      found.merge(attempts_of_report(folder));
      continue;
    }
    if (!fs::is_directory(folder))
      throw ConfigError(
          fmt::format("{}: no such folder; give a run's folder, an attempt in it, or a folder above it", folder));
    const std::size_t before = found.size();
    std::set<std::string> here;
    collect(folder, here, 6);
    found.insert(here.begin(), here.end());
    if (here.empty() && found.size() == before)
      throw ConfigError(
          fmt::format("{}: no attempt (a folder with summary.json or status.json) in it or below it", folder));
  }
  std::vector<RunRecord> runs;
  for (const std::string& path : found) runs.push_back(read_run(shown(path)));
  return runs;
}

}  // namespace echelon::inline report
