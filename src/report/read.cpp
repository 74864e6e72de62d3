#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/atomic_file.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "config/parse.hpp"
#include "report/record.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json read_json(const std::string& path) {
  try {
    json value = json::parse(read_file_whole(path));
    if (!value.is_object()) throw DataError(fmt::format("{}: wants a JSON object", path));
    return value;
  } catch (const json::exception& error) {
    throw DataError(fmt::format("{}: is not whole JSON: {}", path, error.what()));
  }
}

// The value at `key` where it is there and no null.
template <class T>
void take(const json& from, const char* key, T& to) {
  if (const auto at = from.find(key); at != from.end() && !at->is_null()) to = at->get<T>();
}

// A list by rank: its largest entry.
void take_largest(const json& from, const char* key, double& to) {
  std::vector<double> by_rank;
  take(from, key, by_rank);
  if (!by_rank.empty()) to = *std::max_element(by_rank.begin(), by_rank.end());
}

void take_quartiles(const json& from, const char* key, Quartiles& to) {
  const json values = from.value(key, json::object());
  take(values, "median", to.median);
  take(values, "p25", to.p25);
  take(values, "p75", to.p75);
}

void take_split(const json& from, TimeSplit& to) {
  const json split = from.value("time_split_s", json::object());
  take(split, "data", to.data);
  take(split, "forward", to.forward);
  take(split, "backward", to.backward);
  take(split, "split", to.split);
  take(split, "exchange", to.exchange);
  take(split, "optimizer", to.optimizer);
  take(split, "hooks", to.hooks);
  take(split, "other", to.other);
  take(split, "total", to.total);
}

void take_provenance(const json& from, RunRecord& run) {
  const json provenance = from.value("provenance", json::object());
  take(provenance, "version", run.version);
  take(provenance, "commit", run.commit);
  take(provenance, "mpi", run.mpi);
  take(provenance, "job_id", run.job_id);
  take(provenance, "command", run.command);
  take(provenance, "started", run.started);
  take(provenance, "hosts", run.host_names);
  take(provenance, "devices", run.devices);
  take(provenance, "seed", run.seed);
}

void take_summary(const json& summary, const std::string& path, RunRecord& run) {
  if (summary.value("format", "") != "echelon-summary" || summary.value("version", 0) != 1)
    throw DataError(fmt::format("{}: is no summary of version 1 (format \"echelon-summary\")", path));
  run.has_summary = true;
  take(summary, "name", run.name);
  take(summary, "config_hash", run.config_hash);
  take(summary, "state", run.state);
  take(summary, "ranks", run.ranks);
  take(summary, "servers", run.servers);
  take(summary, "hosts", run.hosts);
  take(summary, "device", run.device);
  take(summary, "device_text", run.device_text);
  take(summary, "paced", run.paced);
  take(summary, "dtype", run.dtype);
  take(summary, "threads", run.threads);
  take(summary, "model", run.model);
  take(summary, "parameters", run.parameters);
  take(summary, "strategy", run.strategy);
  take(summary, "algorithm", run.algorithm);
  take(summary, "scaling", run.scaling);
  take(summary, "global_batch", run.global_batch);
  take(summary, "batch_per_replica", run.batch_per_replica);
  take(summary, "accumulation", run.accumulation);
  take(summary, "epochs", run.epochs);
  take(summary, "steps", run.steps);
  take_quartiles(summary, "samples_per_s", run.samples_per_s);
  take(summary.value("samples_per_s", json::object()), "steps", run.timed_steps);
  take_quartiles(summary, "step_s", run.step_s);
  take_split(summary, run.time_split);
  take(summary, "wire_bytes_per_step", run.wire_bytes_per_step);
  take(summary, "formula_bytes_per_step", run.formula_bytes_per_step);
  take(summary, "messages_per_step", run.messages_per_step);
  take(summary, "bytes_read", run.bytes_read);
  take(summary, "bytes_used", run.bytes_used);
  take(summary, "train_loss", run.train_loss);
  take(summary, "test_loss", run.test_loss);
  take(summary, "test_accuracy", run.test_accuracy);
  take_largest(summary, "peak_rss_mb", run.peak_rss_mb);
  take_largest(summary, "device_peak_mb", run.device_peak_mb);
  take(summary, "start_to_first_step_s", run.start_to_first_step_s);
  take_provenance(summary, run);
  if (run.ranks < 1) throw DataError(fmt::format("{}: ranks = {}, but a run has at least 1", path, run.ranks));
}

std::string codec_text(const ExchangeConfig& exchange) {
  std::string more;
  const auto add = [&](const std::string& words) { more += (more.empty() ? " (" : ", ") + words; };
  const bool adapts = exchange.codec == "threshold" && exchange.tau == 0;
  if (exchange.codec == "topk" || adapts) add(fmt::format("density {}", exchange.density));
  if (exchange.codec == "threshold" && !adapts) add(fmt::format("tau {}", exchange.tau));
  if (exchange.codec_warmup_steps > 0) add(fmt::format("after {} steps", exchange.codec_warmup_steps));
  return exchange.codec + (more.empty() ? "" : more + ")");
}

// What is left of the config once all that a scaling study varies is put aside; and once how gradients travel is, too.
void take_config(const std::string& path, RunRecord& run) {
  const std::string place = fmt::format("{} {}", run.device, run.paced ? "paced" : "real");
  run.group = run.experiment = run.config_hash + " " + place;
  if (!fs::exists(path)) return;
  Config config = parse_config(read_file_whole(path), path);
  run.codec = config.exchange.codec;
  run.codec_text = codec_text(config.exchange);
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

// As people would type it: relative to where they are, when it is below.
std::string shown(const std::string& path) {
  const std::string relative = fs::path(path).lexically_relative(fs::current_path()).string();
  return relative.empty() || relative.starts_with("..") ? path : relative;
}

}  // namespace

RunRecord read_run(const std::string& folder) {
  RunRecord run;
  run.folder = folder;
  const std::string summary = folder + "/summary.json", status = folder + "/status.json";
  try {
    if (fs::exists(status)) {
      const json value = read_json(status);
      take(value, "state", run.state);
      take(value, "reason", run.reason);
      take_provenance(value, run);
    }
    if (fs::exists(summary)) take_summary(read_json(summary), summary, run);
  } catch (const json::exception& error) {
    throw DataError(
        fmt::format("{}: a field has the wrong type: {}", run.has_summary ? summary : folder, error.what()));
  }
  take_config(folder + "/config.toml", run);
  return run;
}

std::vector<RunRecord> read_runs(const std::vector<std::string>& folders) {
  std::set<std::string> found;
  for (const std::string& folder : folders) {
    if (!fs::is_directory(folder))
      throw ConfigError(
          fmt::format("{}: no such folder; give a run's folder, an attempt in it, or a folder above", folder));
    const std::size_t before = found.size();
    std::set<std::string> here;
    collect(folder, here, 6);
    found.insert(here.begin(), here.end());
    if (here.empty() && found.size() == before)
      throw ConfigError(
          fmt::format("{}: no attempt (a folder with summary.json or status.json) in it or below", folder));
  }
  std::vector<RunRecord> runs;
  for (const std::string& path : found) runs.push_back(read_run(shown(path)));
  return runs;
}

}  // namespace echelon
