// train.reproducible: what would make the bits of a step depend on the number of replicas is refused.
//
// The step's batch is cut into train.micro_shards (M) equal parts, whatever the number of replicas; each part is one
// forward and one backward pass, and their gradients are added in one balanced binary tree over parts 0 .. M-1. With
// k replicas, a power of two, the lower levels of the tree lie inside a replica and the upper log2 k between replicas.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "config/derive.hpp"
#include "config/keys.hpp"
#include "config/refuse.hpp"

namespace echelon {
namespace {

bool power_of_two(std::int64_t n) { return n > 0 && std::has_single_bit(static_cast<std::uint64_t>(n)); }

// Powers of two around n, of at most `most`: "4 or 8".
std::string powers_around(std::int64_t n, std::int64_t most) {
  const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
  if (2 * below > most) return std::to_string(std::min(below, most));
  return fmt::format("{} or {}", below, 2 * below);
}

// A key left at its default is refused where train.reproducible was asked for.
[[noreturn]] void refuse_beside(const Config& config, const std::string& path, const std::string& why) {
  const bool given = config.origins.contains(path);
  refuse(config, given ? path : "train.reproducible", "train.reproducible = true: " + why);
}

void check_batch(const Config& config) {
  const BatchConfig& batch = config.batch;
  const std::int64_t parts = config.train.micro_shards;
  if (!power_of_two(parts))
    refuse(config, "train.micro_shards",
           fmt::format("train.micro_shards = {} is no power of two; nearest valid: {}", parts,
                       powers_around(parts, std::int64_t{1} << 16)));
  if (batch.accumulation != 1)
    refuse_beside(
        config, "batch.accumulation",
        fmt::format("train.micro_shards = {} says into how many passes a step is cut, batch.accumulation = {} "
                    "would cut it anew; leave it out",
                    parts, batch.accumulation));
  if (!batch.shares.empty())
    refuse_beside(config, "batch.shares", "every replica takes as many micro-shards; leave batch.shares out");
  if (batch.scale_with_replicas)
    refuse_beside(config, "batch.scale_with_replicas",
                  "a step must hold the same samples for every number of replicas; batch.scale_with_replicas = false");
  if (batch.global % parts != 0) {
    const std::int64_t below = batch.global / parts * parts;
    refuse_beside(config, "batch.global",
                  fmt::format("batch.global = {} does not divide by train.micro_shards = {}; nearest valid: {}{}",
                              batch.global, parts, below > 0 ? fmt::format("{} or ", below) : "", below + parts));
  }
}

void check_data(const Config& config) {
  const DataConfig& data = config.data;
  const bool by_itself = data.sharding == Sharding::automatic && (data.order == Order::stream || !data.buckets.empty());
  if (data.sharding != Sharding::record && !by_itself)
    refuse_beside(config, "data.sharding",
                  fmt::format("data.sharding = \"{}\" gives a step other samples for another number of replicas; write "
                              "data.sharding = \"record\"",
                              name_of(data.sharding)));
  if (data.as_replicas > 0)
    refuse_beside(config, "data.as_replicas",
                  "one replica has the bits of several as it is; leave data.as_replicas out");
}

void check_exchange(const Config& config) {
  const ExchangeConfig& exchange = config.exchange;
  if (exchange.strategy != "synchronous")
    refuse_beside(config, "exchange.strategy",
                  fmt::format("exchange.strategy = \"{}\" does not sum every replica's gradients in every step; write "
                              "exchange.strategy = \"synchronous\"",
                              exchange.strategy));
  if (exchange.codec != "none" && exchange.codec != "lossless")
    refuse_beside(config, "exchange.codec",
                  fmt::format("exchange.codec = \"{}\" rounds sums that depend on the number of replicas; write "
                              "exchange.codec = \"none\" or \"lossless\"",
                              exchange.codec));
  const std::vector<std::string>& fitting = tree_algorithms();
  if (std::find(fitting.begin(), fitting.end(), exchange.algorithm) == fitting.end())
    refuse_beside(config, "exchange.algorithm",
                  fmt::format("exchange.algorithm = \"{}\" does not add replicas in one binary tree; write "
                              "exchange.algorithm = \"{}\"",
                              exchange.algorithm, joined(fitting, "\" or \"")));
}

void check_model(const Config& config) {
  const ModelConfig& model = config.model;
  if (config.optimiser.lazy)
    refuse_beside(config, "optimizer.lazy",
                  "tables of embeddings are summed and updated whole; leave optimizer.lazy out");
  if (model.synchronised_batch_norm)
    refuse_beside(config, "model.synchronised_batch_norm",
                  "batch norm takes its statistics over each micro-shard, which no number of replicas changes; "
                  "model.synchronised_batch_norm = false");
  for (const LayerConfig& layer : model.layers)
    if (layer.synchronised)
      refuse(config, "model.layers",
             fmt::format("train.reproducible = true: batch norm takes its statistics over each micro-shard; leave "
                         "'synchronised' out of the layer at {}",
                         layer.where));
}

void check_device(const Config& config) {
  const DeviceConfig& device = config.device;
  if (device.kind == "auto")
    refuse_beside(config, "device.kind",
                  "bits are those of one kind of device; name it: device.kind = \"onednn\", \"reference\" or \"cuda\"");
  if (device.kind == "onednn" && device.threads == 0)
    refuse_beside(config, "device.threads",
                  "device.threads = 0 shares a host's cores between its ranks, and another number of threads adds in "
                  "another order; write device.threads = 1, or what every rank is to have");
}

}  // namespace

const std::vector<std::string>& tree_algorithms() {
  static const std::vector<std::string> all = {"butterfly", "halving_doubling", "binomial"};
  return all;
}

void check_reproducible(const Config& config) {
  check_batch(config);
  check_data(config);
  check_exchange(config);
  check_model(config);
  check_device(config);
}

std::int64_t micro_shards_of_each(const Config& config, std::int64_t replicas) {
  const std::int64_t parts = config.train.micro_shards;
  if (!power_of_two(replicas) || replicas > parts)
    refuse_beside(
        config, "train.micro_shards",
        fmt::format("{} replicas cannot share train.micro_shards = {} in one binary tree; start {} replicas{}",
                    replicas, parts, powers_around(replicas, parts),
                    power_of_two(replicas) ? fmt::format(" or set train.micro_shards = {}", replicas) : ""));
  return parts / replicas;
}

}  // namespace echelon
