// What single values cannot tell: keys that exclude each other. Keys that nothing reads are in unfit.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/derive.hpp"
#include "config/refuse.hpp"
#include "config/unfit.hpp"

namespace echelon {
namespace {

void check_model(const Config& config) {
  const ModelConfig& model = config.model;
  if (!model.zoo.empty() && !model.layers.empty())
    refuse(config, "model.zoo",
           fmt::format("model.zoo = \"{}\" and [[model.layers]] ({}) exclude each other; keep one", model.zoo,
                       model.layers.front().where));
  if (model.zoo.empty() && model.layers.empty())
    refuse(config, "model", "no model: write model.zoo = \"lenet\" or [[model.layers]]");
  const bool synchronised =
      model.synchronised_batch_norm || std::any_of(model.layers.begin(), model.layers.end(),
                                                   [](const LayerConfig& layer) { return layer.synchronised; });
  if (synchronised && config.batch.accumulation > 1)
    refuse(config, "batch.accumulation",
           "synchronised batch norm needs all samples of a step at once: batch.accumulation = 1");
  if (synchronised && config.data.as_replicas > 1)
    refuse(config, "data.as_replicas",
           "synchronised batch norm needs all samples of a step at once; data.as_replicas takes them in turns");
  for (const LayerConfig& layer : model.layers)
    if (layer.type == "batch_norm" && config.data.ragged == Ragged::zero_weight)
      refuse(config, "data.ragged",
             fmt::format("data.ragged = \"zero_weight\" fills batches with samples that batch_norm ({}) would count in "
                         "its means; use \"wrap\" or \"drop\"",
                         layer.where));
}

void check_scaling(const Config& config) {
  if (config.optimiser.scaling != "none" && config.optimiser.base_batch == 0)
    refuse(config, "optimizer.scaling",
           fmt::format("optimizer.scaling = \"{}\" needs the batch that learning_rate is for: set optimizer.base_batch "
                       "({}, batch.global, leaves the rate as it is)",
                       config.optimiser.scaling, config.batch.global));
}

void check_optimiser(const Config& config) {
  const OptimiserConfig& optimiser = config.optimiser;
  check_scaling(config);
  if (optimiser.nesterov && optimiser.momentum == 0)
    refuse(config, "optimizer.nesterov",
           "optimizer.nesterov needs momentum above 0; set optimizer.momentum (0.9) or nesterov = false");
  if (optimiser.lazy && (optimiser.rule == "lars" || optimiser.rule == "lamb"))
    refuse(
        config, "optimizer.lazy",
        fmt::format("optimizer.lazy does not go with rule = \"{}\", whose steps depend on the norm of a whole table; "
                    "use sgd, adam, adamw or rmsprop, or leave lazy out",
                    optimiser.rule));
  if (optimiser.lazy && config.exchange.codec != "none")
    refuse(
        config, "optimizer.lazy",
        fmt::format("optimizer.lazy needs to know which rows were touched; with exchange.codec = \"{}\" whole tables "
                    "travel: leave one of them out",
                    config.exchange.codec));
  if (optimiser.schedule == "step" && optimiser.decay_at_epochs.empty())
    refuse(config, "optimizer.schedule",
           "schedule = \"step\" needs the epochs at which to decay, e.g. decay_at_epochs = [30, 60]");
  for (std::size_t i = 1; i < optimiser.decay_at_epochs.size(); ++i)
    if (optimiser.decay_at_epochs[i] <= optimiser.decay_at_epochs[i - 1])
      refuse(config, "optimizer.decay_at_epochs",
             fmt::format("optimizer.decay_at_epochs must increase, but {} comes after {}", optimiser.decay_at_epochs[i],
                         optimiser.decay_at_epochs[i - 1]));
  if (config.train.epochs > 0 && optimiser.warmup_epochs > static_cast<double>(config.train.epochs))
    refuse(config, "optimizer.warmup_epochs",
           fmt::format("optimizer.warmup_epochs = {} is longer than train.epochs = {}; at most {}",
                       optimiser.warmup_epochs, config.train.epochs, config.train.epochs));
}

void check_batch(const Config& config) {
  const BatchConfig& batch = config.batch;
  if (batch.global == 0 && batch.scale_with_replicas)
    refuse(config, "batch.global", "batch.global = 0 (all samples) cannot grow with batch.scale_with_replicas = true");
  if (batch.global == 0 && config.data.sharding != Sharding::record)
    refuse(config, "batch.global",
           "batch.global = 0 (all samples in a step) cuts the step by record; write data.sharding = \"record\"");
  if (!batch.shares.empty() && batch.scale_with_replicas)
    refuse(config, "batch.shares",
           "batch.shares and batch.scale_with_replicas = true exclude each other: shares cut a fixed global batch");
  if (!batch.shares.empty() && config.data.as_replicas > 0 &&
      static_cast<std::int64_t>(batch.shares.size()) != config.data.as_replicas)
    refuse(config, "batch.shares",
           fmt::format("batch.shares has {} entries but data.as_replicas = {}; one share a replica",
                       batch.shares.size(), config.data.as_replicas));
  if (batch.shares.empty() && batch.global % batch.accumulation != 0) {
    const std::int64_t below = batch.global / batch.accumulation * batch.accumulation;
    refuse(config, "batch.global",
           fmt::format("batch.global = {} does not divide by accumulation = {}; nearest valid: {}{}", batch.global,
                       batch.accumulation, below > 0 ? fmt::format("{} or ", below) : "", below + batch.accumulation));
  }
}

// Streams and buckets put samples into steps in ways of their own.
void check_order(const Config& config) {
  const DataConfig& data = config.data;
  const bool by_record = data.sharding == Sharding::automatic || data.sharding == Sharding::record;
  const bool stream = data.order == Order::stream;
  if (stream && !data.buckets.empty())
    refuse(config, "data.buckets",
           "data.order = \"stream\" and data.buckets exclude each other: windows are equally long");
  if (!by_record && (stream || !data.buckets.empty()))
    refuse(
        config, "data.sharding",
        fmt::format("{} deals out one order of all records: data.sharding = \"{}\" does not go with it; leave it out "
                    "(nearest valid: \"record\")",
                    stream ? "data.order = \"stream\"" : "data.buckets", name_of(data.sharding)));
  for (std::size_t i = 1; i < data.buckets.size(); ++i)
    if (data.buckets[i] <= data.buckets[i - 1])
      refuse(config, "data.buckets",
             fmt::format("data.buckets must rise, but {} comes after {}", data.buckets[i], data.buckets[i - 1]));
}

// A power of two scales gradients without rounding them.
void check_loss_scale(const Config& config) {
  const double scale = config.device.loss_scale;
  if (scale == 0 || std::exp2(std::round(std::log2(scale))) == scale) return;
  const double below = std::exp2(std::floor(std::log2(scale)));
  refuse(config, "device.loss_scale",
         fmt::format("device.loss_scale = {} is no power of two; nearest valid: {} or {}", scale, below, 2 * below));
}

void check_device(const Config& config) {
  const DeviceConfig& device = config.device;
  if (device.dtype == DType::f64 && device.kind != "reference" && device.kind != "cuda")
    refuse(config, "device.dtype",
           fmt::format("device.dtype = \"f64\" needs device.kind = \"reference\" or \"cuda\"; \"{}\" computes in f32",
                       device.kind));
  if (is_half(device.dtype) && device.kind != "cuda")
    refuse(config, "device.dtype",
           fmt::format("device.dtype = \"{}\" needs device.kind = \"cuda\"; \"{}\" takes {}", name_of(device.dtype),
                       device.kind, device.kind == "reference" ? "\"f32\" or \"f64\"" : "\"f32\""));
  check_loss_scale(config);
}

// Servers see parts of parameters.
void check_server(const Config& config) {
  const auto whole = [&](bool asked, const char* key, const char* what) {
    if (asked)
      refuse(config, key,
             fmt::format("exchange.strategy = \"server\" updates parts of parameters on their servers, and {} "
                         "looks at whole ones; strategy \"synchronous\" fits",
                         what));
  };
  whole(config.optimiser.rule == "lars" || config.optimiser.rule == "lamb", "optimizer.rule",
        config.optimiser.rule.c_str());
  whole(config.optimiser.clip_norm > 0, "optimizer.clip_norm", "clip_norm");
  whole(config.optimiser.lazy, "optimizer.lazy", "lazy");
  whole(config.device.loss_scale > 0, "device.loss_scale", "a scaled loss");
  whole(config.device.dtype == DType::f16, "device.dtype", "the scaled loss of f16");
}

void check_exchange(const Config& config) {
  const std::string& algorithm = config.exchange.algorithm;
  const bool serves = config.exchange.strategy == "server";
  if (serves) check_server(config);
  if (algorithm == "nccl" && config.device.kind != "cuda" && config.device.kind != "auto")
    refuse(config, "exchange.algorithm",
           fmt::format("exchange.algorithm = \"nccl\" sums between GPUs, and device.kind = \"{}\" is none; nearest "
                       "valid: \"mpi\", or \"ring\"",
                       config.device.kind));
}

// What a codec's messages need decides how they travel.
void check_codec(const Config& config) {
  const ExchangeConfig& exchange = config.exchange;
  const std::string& codec = exchange.codec;
  if (codec != "none" && exchange.strategy != "synchronous" && exchange.strategy != "server")
    refuse(config, "exchange.codec",
           fmt::format("exchange.codec = \"{}\" is not used by exchange.strategy = \"{}\"; write exchange.strategy = "
                       "\"synchronous\" or \"server\"",
                       codec, exchange.strategy));
  if (codec != "none" && sums_by_library(exchange.algorithm))
    refuse(config, "exchange.algorithm",
           fmt::format("exchange.algorithm = \"{}\" adds what it is given and cannot read codec = \"{}\"; nearest "
                       "valid: \"ring\"",
                       exchange.algorithm, codec));
  if (codec != "none" && exchange.algorithm == "auto")
    refuse(
        config, "exchange.algorithm",
        fmt::format("exchange.algorithm = \"auto\" times values as they are, not as codec = \"{}\" writes them; name "
                    "one, \"ring\" for example",
                    codec));
  const bool lossy = codec != "none" && codec != "lossless";
  if (lossy && config.device.dtype == DType::f64)
    refuse(
        config, "exchange.codec",
        fmt::format("exchange.codec = \"{}\" takes gradients of f32, not of device.dtype = \"f64\"; \"lossless\" takes "
                    "both",
                    codec));
  if (lossy && (config.device.dtype == DType::f16 || config.device.loss_scale > 0))
    refuse(config, "exchange.codec",
           fmt::format("exchange.codec = \"{}\" keeps what it has not sent, in units of a loss scale that may change; "
                       "device.dtype = \"bf16\" needs no scale, and codec = \"lossless\" keeps nothing",
                       codec));
}

// What split models cannot do: keys that look at a whole model, or keep something of each rank's own.
void check_parallel(const Config& config) {
  const ParallelConfig& parallel = config.parallel;
  const bool chosen = parallel.split == "auto";
  const bool split = parallel.pipeline > 1 || parallel.tensor > 1 || parallel.space > 1;
  if (chosen && config.exchange.server_ranks > 0)
    refuse(config, "parallel.split",
           "parallel.split = \"auto\" chooses among all ranks; with exchange.server_ranks write the split yourself");
  for (const LayerConfig& layer : config.model.layers)
    if (layer.stage >= 0 && parallel.pipeline == 1 && !chosen)
      refuse(config, "model.layers",
             fmt::format("the layer at {} has a stage, and parallel.pipeline is 1; leave one out", layer.where));
  if (parallel.time_chunks > 1 && parallel.space > 1)
    refuse(
        config, "parallel.space",
        "parallel.space shares the rows of images, parallel.time_chunks cuts the time of recurrent layers; leave one "
        "out");
  if (parallel.time_chunks > 1 && !config.data.buckets.empty())
    refuse(config, "data.buckets",
           "data.buckets does not go with parallel.time_chunks: chunks are cut for sequences of one length");
  if (!split) return;
  const auto whole = [&](bool asked, const char* path, const char* why) {
    if (asked) refuse(config, path, fmt::format("{} does not go with split models ([parallel]): {}", path, why));
  };
  whole(config.exchange.server_ranks > 0, "exchange.server_ranks",
        "a server on a rank of its own holds a whole model; servers inside the workers go: exchange.server_ranks = 0");
  whole(!config.data.buckets.empty(), "data.buckets",
        "what travels between their ranks has one length; pad all to it: leave data.buckets out");
  whole(config.train.reproducible && parallel.space > 1, "train.reproducible",
        "what ranks that share images add has another tree; parallel.pipeline and parallel.tensor go");
  whole(config.data.as_replicas > 0 && parallel.space > 1, "data.as_replicas",
        "ranks that share images take one replica's; parallel.pipeline and parallel.tensor go");
  whole(config.data.as_replicas > 0 && !config.batch.shares.empty(), "batch.shares",
        "data.as_replicas then takes micro-batches of one size in turns; leave batch.shares out");
}

}  // namespace

void check_combinations(const Config& config) {
  check_model(config);
  if (config.data.train.empty())
    refuse(config, "data",
           "data.train is missing: a folder, file or pattern of HDF5 shards (see `echelon data import`)");
  check_batch(config);
  check_order(config);
  refuse_unfit_keys(config);
  if (config.train.epochs == 0 && config.train.steps == 0)
    refuse(config, "train.epochs",
           "train.epochs and train.steps are both 0: nothing would be trained; set one of them");
  check_optimiser(config);
  check_parallel(config);
  check_exchange(config);
  check_codec(config);
  check_device(config);
  if (config.run.results.empty())
    refuse(config, "run.results", "run.results is empty: it must name the folder of all runs, for example \"results\"");
  if (config.train.reproducible) check_reproducible(config);
}

}  // namespace echelon
