// SPDX-License-Identifier: Apache-2.0
#include "config/unfit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "config/combinations.hpp"
#include "config/keys.hpp"
#include "config/refuse.hpp"
#include "config/traits/algorithms.hpp"
#include "config/traits/codecs.hpp"
#include "config/traits/devices.hpp"
#include "config/traits/rules.hpp"
#include "config/traits/strategies.hpp"
#include "config/traits/zoo.hpp"

namespace echelon::inline config {
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

// The readers of a key that only some words of its chooser read.
struct Readers {
  bool read = false;              // some choice of the config reads the key
  std::vector<std::string> text;  // one per chooser: "exchange.codec = "topk" or "threshold""
};

// Returns "exchange.codec = "topk" or "threshold"" or, for most words, "every algorithm except "naive", "mpi" and
// "nccl"".
template <class Table>
std::string readers_text(const Table& table, const std::string& chooser, const std::string& name) {
  const auto reads = [&](const auto& entry) { return entry.reads.contains(name); };
  const std::vector<std::string> users = names_where(table, reads);
  const std::vector<std::string> others = names_where(table, [&](const auto& entry) { return !reads(entry); });
  constexpr std::size_t kFew = 3;
  if (users.size() <= kFew || users.size() <= others.size())
    return fmt::format("{} = \"{}\"", chooser, joined(users, "\" or \""));
  std::string but;
  for (std::size_t i = 0; i < others.size(); ++i)
    but += fmt::format("{}\"{}\"", i == 0 ? "" : i + 1 == others.size() ? " and " : ", ", others[i]);
  return fmt::format("every {} except {}", chooser.substr(chooser.find('.') + 1), but);
}

// Returns the strategies that read [exchange.<owner>], the owner first.
std::vector<std::string> readers_of_table(const std::string& owner) {
  std::vector<std::string> names = {owner};
  for (const StrategyTraits& strategy : kStrategies)
    if (strategy.tables.contains(owner)) names.emplace_back(strategy.name);
  return names;
}

std::string summing_strategies() {
  const auto sums = [](const StrategyTraits& strategy) { return strategy.sums_gradients(); };
  return fmt::format("exchange.strategy = \"{}\"", joined(names_where(kStrategies, sums), "\" or \""));
}

class Finder {
 public:
  explicit Finder(const Config& config) : config_(config) {}

  std::vector<UnfitKey> run() {
    find_by_declarations();
    find_in_parallel();
    find_in_exchange();
    find_in_exclusions();
    used("train.micro_shards", config_.train.reproducible, "train.reproducible = true");
    for (const char* path : {"device.pace_jitter", "device.pace_spread", "device.pace_factors"})
      used(path, config_.device.pace_ms != 0, "device.pace_ms");
    const std::vector<std::string> wide = zoo_names_of_widths();
    used("model.widths", std::find(wide.begin(), wide.end(), config_.model.zoo) != wide.end(),
         fmt::format("model.zoo = \"{}\"", joined(wide, "\" or \"")));
    used("model.focal_gamma", config_.model.loss == "focal", "model.loss = \"focal\"");
    used("model.weights_partial", !config_.model.weights.empty(), "model.weights, which names a file or a run");
    for (const char* path : {"monitor.plateau_evaluations", "monitor.plateau_change"})
      used(path, config_.monitor.plateau != Watch::off, "monitor.plateau");
    for (const char* path : {"evaluate.by", "evaluate.metrics"})
      used(path, !config_.data.test.empty(), "evaluations, which need data.test");
    used("evaluate.train_fraction", !config_.data.test.empty() && config_.evaluate.by != EvaluateBy::aside,
         "evaluations by replicas, which need data.test");
    used("monitor.noise_scale", sums_whole_gradients(),
         fmt::format("{} with gradients of whole models, summed on the host, without optimizer.momentum_before_coding",
                     summing_strategies()));
    const AugmentKeys& augment = config_.data.augment;
    used("data.augment.crop_ratio", augment.crops(), "data.augment.crop_scale");
    for (const char* path : {"data.augment.erase_scale", "data.augment.erase_ratio"})
      used(path, augment.erase > 0, "data.augment.erase");
    used("data.evaluation_resize", !config_.data.image_size.empty(), "data.image_size");
    const auto& layers = config_.model.layers;
    used("model.batch_norm_group",
         config_.model.synchronised_batch_norm ||
             std::any_of(layers.begin(), layers.end(), [](const LayerConfig& layer) { return layer.synchronised; }),
         "synchronised batch norm: model.synchronised_batch_norm, or synchronised on a layer");
    used("optimizer.average_decay", strategy_traits(config_.exchange.strategy).sums_gradients(), summing_strategies());
    const bool draws = config_.model.weights.empty() || config_.model.weights_partial;
    used("model.init", draws, "weights that are drawn, not those of model.weights");
    used("model.init_range", draws && draws_uniformly(), "init = \"uniform\", of the model or a layer");
    const ScheduleTraits* schedule = find_traits(kSchedules, config_.optimiser.schedule);
    used("optimizer.warmup_epochs", schedule == nullptr || !schedule->rises_itself,
         fmt::format("every schedule except \"{}\", which begin with a rise of their own",
                     joined(names_where(kSchedules, [](const auto& one) { return one.rises_itself; }), "\" and \"")));
    used("data.stage_limit_gb", !config_.data.stage.empty(), "data.stage, which names a folder");
    used("fault.seed", !config_.fault.inject.empty(), "fault.inject");
    used("run.resume_weights_only", !config_.run.resume_from.empty(), "run.resume_from, which names a checkpoint");
    return std::move(found_);
  }

 private:
  // Reports `path` if its value is not the default and nothing reads it; `readers` names the choices that would.
  void used(const std::string& path, bool is_used, const std::string& readers) {
    if (is_used) return;
    const Key<Config>& key = *find_key(path);
    if (key.get(config_) != key.get(defaults()))
      found_.push_back({path, fmt::format("{} is not used here: it is for {}", path, readers), "leave it out"});
  }

  bool draws_uniformly() const {
    const std::vector<LayerConfig>& layers = config_.model.layers;
    return config_.model.init == "uniform" ||
           std::any_of(layers.begin(), layers.end(), [](const LayerConfig& layer) { return layer.init == "uniform"; });
  }

  bool sums_whole_gradients() const {
    const ParallelConfig& parallel = config_.parallel;
    const bool whole =
        parallel.split != "auto" && parallel.pipeline == 1 && parallel.tensor == 1 && parallel.space == 1;
    const ExchangeConfig& exchange = config_.exchange;
    return whole && strategy_traits(exchange.strategy).sums_gradients() && !config_.optimiser.momentum_before_coding &&
           exchange.reduction == Reduction::sum && !algorithm_traits(exchange.algorithm).on_devices;
  }

  bool is_among_kinds(std::string_view kind) const {
    const std::vector<std::string>& kinds = config_.device.kinds;
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  }

  // Adds keys that only some words of a chooser read, as declared. Several choosers may share a key.
  template <class Table>
  void add_readers(const Table& table, const std::string& section, const std::string& chooser,
                   const std::string& chosen) {
    std::vector<std::string> names;
    for (const auto& entry : table)
      for (const std::string_view name : entry.reads)
        if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
    for (const std::string& name : names) {
      Readers& readers = readers_[section + "." + name];
      const auto* entry = find_traits(table, chosen);
      readers.read = readers.read || (entry && entry->reads.contains(name));
      readers.text.push_back(readers_text(table, section + "." + chooser, name));
    }
  }

  void find_by_declarations() {
    const OptimiserConfig& optimiser = config_.optimiser;
    const ExchangeConfig& exchange = config_.exchange;
    add_readers(kRules, "optimizer", "rule", optimiser.rule);
    add_readers(kScalings, "optimizer", "scaling", optimiser.scaling);
    add_readers(kSchedules, "optimizer", "schedule", optimiser.schedule);
    add_readers(kStrategies, "exchange", "strategy", exchange.strategy);
    add_readers(kAlgorithms, "exchange", "algorithm", exchange.algorithm);
    add_readers(kCodecs, "exchange", "codec", exchange.codec);
    add_readers(kDevices, "device", "kind", config_.device.kind);
    for (const DeviceTraits& device : kDevices)
      for (const std::string_view name : device.reads)
        if (is_among_kinds(device.name)) readers_[fmt::format("device.{}", name)].read = true;
    for (const char* cost : {"device.paced_gflops", "device.paced_gb_per_s", "device.paced_table"}) {
      readers_[cost].read |= config_.device.pace_ms != 0;
      readers_[cost].text.emplace_back("device.pace_ms");
    }
    const std::string tables = "exchange.";
    for (const Key<Config>& key : config_keys()) {
      if (key.section.starts_with(tables)) {
        const std::string owner = key.section.substr(tables.size());
        used(key.path(), strategy_traits(exchange.strategy).reads_table(owner),
             fmt::format("exchange.strategy = \"{}\"", joined(readers_of_table(owner), "\" or \"")));
      }
      if (const auto found = readers_.find(key.path()); found != readers_.end())
        used(key.path(), found->second.read, joined(found->second.text, " or "));
    }
  }

  void find_in_parallel() {
    const ParallelConfig& parallel = config_.parallel;
    const bool chosen = parallel.split == "auto";
    const bool split = parallel.pipeline > 1 || parallel.tensor > 1 || parallel.space > 1;
    for (const char* path : {"parallel.schedule", "parallel.costs"})
      used(path, parallel.pipeline > 1 || chosen, "parallel.pipeline > 1");
    used("parallel.recurrent_from", parallel.tensor > 1 || chosen, "parallel.tensor > 1");
    used("parallel.allow_across_nodes", split || chosen, "split models");
  }

  void find_in_exchange() {
    const ExchangeConfig& exchange = config_.exchange;
    used("exchange.servers", exchange.server.ranks == 0, "servers inside the workers, exchange.server.ranks = 0");
    used("exchange.segment_kb", exchange.codec == kNoCodec.name || strategy_traits(exchange.strategy).cuts_codes,
         "messages that are not coded; servers' coded messages are whole parts");
    used("exchange.segment_kb", exchange.reduction == Reduction::sum,
         "an all-reduce that sums; Adasum sends whole buckets");
    used("exchange.helpers", strategy_traits(exchange.strategy).all_reduces(), "strategies whose replicas all-reduce");
    used("exchange.asynchronous.compensation_decay", exchange.asynchronous.delay_compensation > 0,
         "exchange.asynchronous.delay_compensation > 0");
    used("exchange.density", exchange.tau == 0 || strategy_traits(exchange.strategy).has_servers(),
         "tau = 0, which adapts to it");
    used("exchange.strom.density", exchange.strom.tau == 0, "tau = 0, which adapts to it");
    const CodecTraits* codec = find_traits(kCodecs, exchange.codec);
    used("exchange.error_feedback", codec && codec->lossy, "lossy codecs");
    used("optimizer.momentum_before_coding",
         strategy_traits(exchange.strategy).sums_gradients() && exchange.codec != kNoCodec.name,
         summing_strategies() + " with exchange.codec");
    used("exchange.code_sums", strategy_traits(exchange.strategy).all_reduces(),
         "strategies whose replicas all-reduce");
    used("exchange.codec_warmup_steps", exchange.codec != kNoCodec.name, "a codec");
    find_in_shared_memory();
    for (const char* path : {"exchange.warmup_steps", "exchange.warmup_epochs", "exchange.warmup_each_epoch"})
      used(path, exchange.warmup_replicas > 0, "exchange.warmup_replicas > 0");
    for (const char* path : {"network.delay_us", "network.ranks_per_host"})
      used(path, !config_.network.rate.empty(), "network.rate");
    const auto may_be = [&](std::string_view kind) { return config_.device.kind == kind || is_among_kinds(kind); };
    used("device.tf32", (may_be("cuda") || may_be("onednn") || may_be("auto")) && config_.device.dtype == DType::f32,
         "device.kind = \"cuda\", \"onednn\" or \"auto\" with dtype = \"f32\"");
    used("device.measure_layouts", may_be("onednn") || may_be("auto"), "device.kind = \"onednn\" or \"auto\"");
    used("device.emulate_halves", is_half(config_.device.dtype), "device.dtype = \"bf16\" or \"f16\"");
  }

  // The part of an all-reduce within hosts excludes the same choices as the all-reduce of that name (combinations.cpp).
  void find_in_shared_memory() {
    const ExchangeConfig& exchange = config_.exchange;
    if (!algorithm_traits(exchange.algorithm).nests || !algorithm_traits(exchange.inner).in_memory) return;
    const auto found = [&](bool is_unfit, const char* beside, const char* reason) {
      if (is_unfit)
        found_.push_back(
            {"exchange.inner",
             fmt::format("exchange.inner = \"{}\" cannot be combined with {}: {}", exchange.inner, beside, reason),
             "nearest valid: \"ring\""});
    };
    found(exchange.codec != kNoCodec.name, "exchange.codec", "values are summed in shared memory as they are");
    found(exchange.check_messages, "exchange.check_messages", "sums in shared memory are not messages");
    found(config_.run.on_lost_worker == OnLostWorker::go_on, "run.on_lost_worker = \"continue\"",
          "memory is shared by all ranks that the run was started with");
  }

  // Adds keys that clash with the config's choices (config/combinations.cpp) and are not read or give way.
  void find_in_exclusions() {
    for (const Clash& clash : clashes(config_)) {
      if (clash.verdict == Verdict::refused) continue;
      const std::string& path = clash.blamed->path;
      const std::string what =
          clash.verdict == Verdict::not_read
              ? fmt::format("{} is not used here together with {}", path, clash.one->text())
              : fmt::format("{} cannot be combined with {}", clash.blamed->text(), clash.one->text());
      const std::string cure = clash.verdict == Verdict::not_read ? "leave it out" : cure_of(clash, config_);
      found_.push_back({path, fmt::format("{}: {}", what, clash.reason), cure});
    }
  }

  const Config& config_;
  std::vector<UnfitKey> found_;
  std::map<std::string, Readers> readers_;  // by path
};

}  // namespace

std::vector<UnfitKey> unfit_keys(const Config& config) { return Finder(config).run(); }

void refuse_unfit_keys(const Config& config) {
  const std::vector<UnfitKey> unfit = unfit_keys(config);
  if (!unfit.empty())
    refuse(config, unfit.front().path, fmt::format("{}; {}", unfit.front().reason, unfit.front().cure));
}

void settle_defaults(Config& config) {
  ExchangeConfig& exchange = config.exchange;
  for (const Clash& clash : clashes(config)) {
    if (clash.verdict != Verdict::gives_way || config.origins.contains(clash.blamed->path)) continue;
    if (clash.blamed->path == "exchange.overlap") exchange.overlap = Overlap::buckets;
    if (clash.blamed->path == "exchange.priority") exchange.priority = false;
  }
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

}  // namespace echelon::inline config
