#include "config/unfit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "config/keys.hpp"
#include "config/refuse.hpp"

namespace echelon {
namespace {

const Key<Config>* find_key(const std::string& path) {
  static const std::map<std::string, const Key<Config>*> by_path = [] {
    std::map<std::string, const Key<Config>*> all;
    for (const auto& key : config_keys()) all.emplace(key.path(), &key);
    return all;
  }();
  const auto found = by_path.find(path);
  return found == by_path.end() ? nullptr : found->second;
}

const Config& defaults() {
  static const Config config;
  return config;
}

// Why the optimiser needs every gradient before its first update, whatever the split; empty where it does not.
std::string needs_all_gradients(const Config& config) {
  if (config.optimiser.clip_norm > 0) return "optimizer.clip_norm";
  if (config.device.loss_scale > 0 || config.device.dtype == DType::f16) return "a scaled loss";
  return {};
}

// Keys of [optimizer] that some of its rules, schedules and ways of scaling use, with the words that do.
struct OptimiserKey {
  const char* name;
  const char* selector;  // the key that chooses
  std::vector<std::string> users;
};

const std::vector<OptimiserKey>& optimiser_keys() {
  static const std::vector<OptimiserKey> all = {
      {"momentum", "rule", {"sgd", "rmsprop", "lars"}},
      {"nesterov", "rule", {"sgd"}},
      {"beta1", "rule", {"adam", "adamw", "lamb"}},
      {"beta2", "rule", {"adam", "adamw", "lamb"}},
      {"alpha", "rule", {"rmsprop"}},
      {"epsilon", "rule", {"adam", "adamw", "lamb", "rmsprop"}},
      {"trust_coefficient", "rule", {"lars"}},
      {"base_batch", "scaling", {"linear", "sqrt"}},
      {"decay_at_epochs", "schedule", {"step"}},
      {"decay_factor", "schedule", {"step"}},
      {"final_factor", "schedule", {"cosine", "polynomial"}},
      {"power", "schedule", {"polynomial"}},
  };
  return all;
}

class Finder {
 public:
  explicit Finder(const Config& config) : config_(config) {}

  std::vector<UnfitKey> run() {
    find_in_optimiser();
    find_in_parallel();
    find_in_exchange();
    find_in_codec();
    find_in_device();
    used("train.micro_shards", config_.train.reproducible, "train.reproducible = true");
    used("run.resume_weights_only", !config_.run.resume_from.empty(), "run.resume_from, which names a checkpoint");
    return std::move(found_);
  }

 private:
  // `path` differs from its default though only `readers` read it.
  void used(const std::string& path, bool is_used, const std::string& readers) {
    if (is_used) return;
    const Key<Config>& key = *find_key(path);
    if (key.get(config_) != key.get(defaults()))
      found_.push_back({path, fmt::format("{} is not used here: it is for {}", path, readers), "leave it out"});
  }

  void find_in_optimiser() {
    const OptimiserConfig& optimiser = config_.optimiser;
    for (const OptimiserKey& key : optimiser_keys()) {
      const std::string_view selector = key.selector;
      const std::string& chosen = selector == "rule"       ? optimiser.rule
                                  : selector == "schedule" ? optimiser.schedule
                                                           : optimiser.scaling;
      used(std::string("optimizer.") + key.name,
           std::find(key.users.begin(), key.users.end(), chosen) != key.users.end(),
           fmt::format("{} = \"{}\"", selector, joined(key.users, "\" or \"")));
    }
  }

  void find_in_parallel() {
    const ParallelConfig& parallel = config_.parallel;
    const bool chosen = parallel.split == "auto";
    const bool split = parallel.pipeline > 1 || parallel.tensor > 1 || parallel.space > 1;
    for (const char* path : {"parallel.pipeline", "parallel.tensor", "parallel.space"})
      used(path, !chosen, "parallel.split = \"given\"; \"auto\" chooses it");
    for (const char* path : {"parallel.schedule", "parallel.costs"})
      used(path, parallel.pipeline > 1 || chosen, "parallel.pipeline > 1");
    used("parallel.recurrent_from", parallel.tensor > 1 || chosen, "parallel.tensor > 1");
    used("parallel.allow_across_nodes", split || chosen, "split models");
  }

  void find_in_exchange() {
    const ExchangeConfig& exchange = config_.exchange;
    const std::string& algorithm = exchange.algorithm;
    const bool serves = exchange.strategy == "server", library = sums_by_library(algorithm);
    for (const char* path : {"exchange.algorithm", "exchange.overlap"})
      used(path, !serves, "every strategy but \"server\", which has one way of its own");
    used("exchange.server_ranks", serves, "strategy = \"server\"");
    used("exchange.servers", exchange.server_ranks == 0, "servers inside the workers, exchange.server_ranks = 0");
    used("exchange.servers", algorithm == "server" || serves, "algorithm = \"server\" or strategy = \"server\"");
    used("exchange.segment_kb", algorithm != "naive" && !library && algorithm != "auto",
         "every algorithm but \"naive\", \"mpi\", \"nccl\" and \"auto\", which chooses it");
    used("exchange.segment_kb", !serves || exchange.codec == "none",
         "messages that are not coded; servers' coded messages are whole parts");
    used("exchange.bucket_mb", algorithm != "auto", "every algorithm but \"auto\", which chooses it");
    for (const char* path : {"exchange.inner", "exchange.outer"})
      used(path, algorithm == "hierarchical", "algorithm = \"hierarchical\"");
    if (exchange.priority && library && !serves)
      found_.push_back({"exchange.priority",
                        fmt::format("algorithm \"{}\" goes out in one static order and takes no priority", algorithm),
                        "leave it out"});
    const std::string first = needs_all_gradients(config_);
    if (exchange.overlap == Overlap::layers && !serves && !first.empty())
      found_.push_back({"exchange.overlap",
                        fmt::format("{} needs every gradient before the first update, overlap = \"layers\" updates "
                                    "layer by layer",
                                    first),
                        "\"buckets\" fits"});
  }

  // What a codec's messages need decides how they travel.
  void find_in_codec() {
    const ExchangeConfig& exchange = config_.exchange;
    const std::string& codec = exchange.codec;
    const bool picks = codec == "topk" || codec == "threshold";
    const bool rides = codec == "none" || codec == "fp16" || codec == "bf16" || codec == "lossless";
    used("exchange.density", picks, "codec = \"topk\" or \"threshold\"");
    used("exchange.density", codec != "threshold" || exchange.tau == 0, "tau = 0, which adapts to it");
    used("exchange.tau", codec == "threshold", "codec = \"threshold\"");
    used("exchange.index_coding", picks, "codec = \"topk\" or \"threshold\"");
    used("exchange.codec_warmup_steps", codec != "none", "a codec");
    used("exchange.algorithm", rides,
         fmt::format("gradients that can be added on their way; codec = \"{}\" brings an exchange of its own", codec));
  }

  void find_in_device() {
    const DeviceConfig& device = config_.device;
    used("device.tf32", device.kind == "cuda" && device.dtype == DType::f32,
         "device.kind = \"cuda\" with dtype = \"f32\"");
    used("device.cuda_graphs", device.kind == "cuda", "device.kind = \"cuda\"");
    for (const char* path : {"device.paced_gflops", "device.paced_gb_per_s", "device.paced_table"})
      used(path, device.kind == "paced", "device.kind = \"paced\"");
  }

  const Config& config_;
  std::vector<UnfitKey> found_;
};

}  // namespace

bool sums_by_library(const std::string& algorithm) { return algorithm == "mpi" || algorithm == "nccl"; }

std::vector<UnfitKey> unfit_keys(const Config& config) { return Finder(config).run(); }

void refuse_unfit_keys(const Config& config) {
  const std::vector<UnfitKey> unfit = unfit_keys(config);
  if (!unfit.empty())
    refuse(config, unfit.front().path, fmt::format("{}; {}", unfit.front().reason, unfit.front().cure));
}

void settle_defaults(Config& config) {
  ExchangeConfig& exchange = config.exchange;
  if (exchange.strategy == "server") return;
  if (!config.origins.contains("exchange.overlap") && !needs_all_gradients(config).empty())
    exchange.overlap = Overlap::buckets;
  if (!config.origins.contains("exchange.priority") && sums_by_library(exchange.algorithm)) exchange.priority = false;
}

bool unset_key(Config& config, const std::string& path) {
  if (path == "model.layers") {
    config.model.layers.clear();
  } else {
    const Key<Config>* key = find_key(path);
    if (!key) return false;
    key->set(config, key->get(defaults()));
  }
  config.origins.erase(path);
  return true;
}

std::vector<std::string> give_way_to_overrides(Config& config, const Config& file_alone) {
  const auto stands_in_file = [&](const std::string& path) {
    const auto here = config.origins.find(path);
    const auto there = file_alone.origins.find(path);
    return here != config.origins.end() && there != file_alone.origins.end() && here->second == there->second;
  };
  const std::vector<UnfitKey> of_file = unfit_keys(file_alone);
  const auto fitted = [&](const UnfitKey& key) {
    return std::none_of(of_file.begin(), of_file.end(), [&](const UnfitKey& other) { return other.path == key.path; });
  };
  std::vector<std::string> notes;
  for (;;) {
    const std::vector<UnfitKey> unfit = unfit_keys(config);
    const auto next = std::find_if(unfit.begin(), unfit.end(),
                                   [&](const UnfitKey& key) { return stands_in_file(key.path) && fitted(key); });
    if (next == unfit.end()) return notes;
    notes.push_back(fmt::format("{}: {} = {} is left out: {}", config.origins.at(next->path), next->path,
                                value_toml(find_key(next->path)->get(config)), next->reason));
    unset_key(config, next->path);
    settle_defaults(config);
  }
}

}  // namespace echelon
