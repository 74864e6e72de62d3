// SPDX-License-Identifier: Apache-2.0
// train.reproducible: refuses numbers that would make the bits of a step depend on the number of replicas.
// combinations.cpp refuses choices that would.
//
// The step's batch is cut into train.micro_shards (M) equal parts, whatever the number of replicas; each part is one
// forward and one backward pass, and their gradients are added in one balanced binary tree over parts 0 .. M-1. With
// k replicas, a power of two, the lower levels of the tree lie inside a replica and the upper log2 k between replicas.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "config/batch_plan.hpp"
#include "config/refuse.hpp"

namespace echelon::inline config {
namespace {

bool power_of_two(std::int64_t n) { return n > 0 && std::has_single_bit(static_cast<std::uint64_t>(n)); }

// Returns the powers of two around n, up to `most`: "4 or 8".
std::string powers_around(std::int64_t n, std::int64_t most) {
  const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
  if (2 * below > most) return std::to_string(std::min(below, most));
  return fmt::format("{} or {}", below, 2 * below);
}

// Places the error where train.reproducible was set if the key was left at its default.
[[noreturn]] void refuse_beside(const Config& config, const std::string& path, const std::string& why) {
  const bool given = config.origins.contains(path);
  refuse(config, given ? path : "train.reproducible", "train.reproducible = true: " + why);
}

void check_batch(const Config& config) {
  const BatchConfig& batch = config.batch;
  const std::int64_t parts = config.train.micro_shards;
  if (!power_of_two(parts))
    refuse(config, "train.micro_shards",
           fmt::format("train.micro_shards = {} is not a power of two; nearest valid: {}", parts,
                       powers_around(parts, std::int64_t{1} << 16)));
  if (batch.global % parts != 0) {
    const std::int64_t below = batch.global / parts * parts;
    refuse_beside(config, "batch.global",
                  fmt::format("batch.global = {} is not divisible by train.micro_shards = {}; nearest valid: {}{}",
                              batch.global, parts, below > 0 ? fmt::format("{} or ", below) : "", below + parts));
  }
}

void check_data(const Config& config) {
  const DataConfig& data = config.data;
  const bool by_itself = data.sharding == Sharding::automatic &&
                         (data.order == Order::stream || !data.buckets.empty() || data.balance != Balance::fixed);
  if (data.sharding == Sharding::automatic && !by_itself)
    refuse_beside(
        config, "data.sharding",
        fmt::format("data.sharding = \"{}\" makes the samples of a step depend on the number of replicas; write "
                    "data.sharding = \"record\"",
                    name_of(data.sharding)));
}

void check_layers(const Config& config) {
  for (const LayerConfig& layer : config.model.layers)
    if (layer.synchronised)
      refuse(config, "model.layers",
             fmt::format("train.reproducible = true: batch norm takes its statistics over each micro-shard; leave "
                         "'synchronised' out of the layer at {}",
                         layer.where));
}

void check_device(const Config& config) {
  const DeviceConfig& device = config.device;
  if (device.measure_layouts)
    refuse_beside(config, "device.measure_layouts",
                  "device.measure_layouts = true chooses layouts by time, and the order of sums depends on them; write "
                  "device.measure_layouts = false");
  if (device.kind == "onednn" && device.threads == 0)
    refuse_beside(
        config, "device.threads",
        "device.threads = 0 divides the cores of a host among its ranks, and the order of sums depends on the "
        "number of threads; write device.threads = 1, or another fixed number");
}

}  // namespace

void check_reproducible(const Config& config) {
  check_batch(config);
  check_data(config);
  check_layers(config);
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

}  // namespace echelon::inline config
