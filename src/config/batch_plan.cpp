// SPDX-License-Identifier: Apache-2.0
#include "config/batch_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text.hpp"
#include "config/refuse.hpp"

namespace echelon::inline config {
namespace {

// The smallest batch that divides into whole micro-batches for every share, as every multiple of it does too.
std::int64_t batch_unit(const std::vector<std::int64_t>& shares, std::int64_t accumulation) {
  const std::int64_t sum = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  std::int64_t unit = 1;
  for (const std::int64_t share : shares)
    unit = std::lcm(unit, sum * accumulation / std::gcd(sum * accumulation, share));
  return unit;
}

void check_divides(const Config& config, std::int64_t global, std::int64_t unit, const std::string& divisor) {
  if (global % unit == 0) return;
  const std::int64_t below = global / unit * unit;
  refuse(config, "batch.global",
         fmt::format("batch.global = {} is not divisible by {}; nearest valid: {}{}", global, divisor,
                     below > 0 ? fmt::format("{} or ", below) : "", below + unit));
}

// Every replica gets an equal number; the first replicas get the remainder, one accumulation each.
void share_out_nearly(BatchPlan& plan, std::int64_t parts) {
  const std::int64_t units = plan.global / plan.accumulation;
  for (std::int64_t part = 0; part < parts; ++part) {
    plan.micro.push_back(units / parts + (part < units % parts ? 1 : 0));
    plan.per_replica.push_back(plan.micro.back() * plan.accumulation);
  }
}

void share_out(BatchPlan& plan, const std::vector<std::int64_t>& shares) {
  const std::int64_t sum = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  for (const std::int64_t share : shares) {
    plan.per_replica.push_back(plan.global / sum * share + plan.global % sum * share / sum);
    plan.micro.push_back(plan.per_replica.back() / plan.accumulation);
  }
}

// Plain gradient descent: a step takes all samples. Samples of weight 0 fill up the batch.
std::int64_t everything(const Config& config, std::int64_t samples, std::int64_t unit, const std::string& divisor) {
  const std::int64_t global = (samples + unit - 1) / unit * unit;
  if (global != samples && config.data.ragged != Ragged::zero_weight)
    refuse(config, "batch.global",
           fmt::format("batch.global = 0 takes all {} samples in a step, which are not divisible by {}; data.ragged = "
                       "\"zero_weight\" pads the step",
                       samples, divisor));
  return global;
}

// Micro-batches per replica: batch.accumulation, or its number of micro-shards.
std::int64_t accumulation_of(const Config& config, std::int64_t replicas) {
  return config.train.reproducible ? micro_shards_of_each(config, replicas) : config.batch.accumulation;
}

}  // namespace

BatchPlan derive_batch(const Config& config, int replicas, std::int64_t samples) {
  const BatchConfig& batch = config.batch;
  const std::int64_t as_replicas = config.data.as_replicas;
  if (as_replicas > 0 && replicas > 1)
    refuse(config, "data.as_replicas",
           fmt::format("data.as_replicas = {} needs one replica, but {} run; start one or set it to 0", as_replicas,
                       replicas));
  const std::int64_t parts = as_replicas > 0 ? as_replicas : replicas;
  if (parts > samples && config.data.balance == Balance::fixed)
    refuse(config, as_replicas > 0 ? "data.as_replicas" : "data.train",
           fmt::format("{}, but only {}; at most {}", counted(parts, "replica"), counted(samples, "sample"),
                       counted(samples, "replica")));
  if (!batch.shares.empty() && static_cast<std::int64_t>(batch.shares.size()) != parts)
    refuse(config, "batch.shares",
           fmt::format("batch.shares has {} for {}; give one share for each replica or leave it out",
                       batch.shares.size() == 1 ? "1 entry" : fmt::format("{} entries", batch.shares.size()),
                       counted(parts, "replica")));

  BatchPlan plan;
  plan.accumulation = accumulation_of(config, parts);
  const std::vector<std::int64_t> shares =
      batch.shares.empty() ? std::vector<std::int64_t>(static_cast<std::size_t>(parts), 1) : batch.shares;
  const std::int64_t sum = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  const std::int64_t unit = batch.nearly_equal ? plan.accumulation : batch_unit(shares, plan.accumulation);
  const char* passes = config.train.reproducible ? "micro-shards" : "accumulation";
  const std::string divisor = batch.shares.empty()
                                  ? fmt::format("{} x {} {}", counted(parts, "replica"), passes, plan.accumulation)
                                  : fmt::format("the shares (sum {}) x accumulation {}", sum, plan.accumulation);
  if (batch.global == 0) {
    plan.global = everything(config, samples, unit, divisor);
  } else {
    plan.global = batch.global * (batch.scale_with_replicas ? parts : 1);
    check_divides(config, batch.scale_with_replicas ? batch.global : plan.global,
                  batch.scale_with_replicas ? plan.accumulation : unit, divisor);
  }
  if (config.data.ragged == Ragged::drop && plan.global > samples)
    refuse(config, "batch.global",
           fmt::format("a step takes {} but the data holds {}, and data.ragged = \"drop\" would leave no step; "
                       "at most {}",
                       counted(plan.global, "sample"), samples, samples));
  batch.nearly_equal ? share_out_nearly(plan, parts) : share_out(plan, shares);
  if (as_replicas > 0) {  // one replica processes the samples of all replicas
    plan.per_replica = {plan.global};
    plan.micro = {plan.global / plan.accumulation};
  }
  return plan;
}

BatchPlan plan_batch(const Config& config, int replicas, std::int64_t samples) {
  BatchPlan batch = derive_batch(config, replicas, samples);
  if (config.data.as_replicas == 0) return batch;
  Config each = config;
  each.data.as_replicas = 0;
  return derive_batch(each, static_cast<int>(config.data.as_replicas), samples);
}

std::vector<std::int64_t> evaluation_batches(const Config& config, std::int64_t samples, int ranks) {
  const std::int64_t most = config.evaluate.batch;
  std::vector<std::int64_t> batches;
  if (config.data.order == Order::stream) {
    const std::int64_t rows = std::min(most, samples), parts = std::min<std::int64_t>(ranks, rows);
    for (std::int64_t r = 0; r < parts; ++r) batches.push_back(rows / parts + (r < rows % parts ? 1 : 0));
    return batches;
  }
  // train.reproducible: the size of batches does not depend on the number of ranks.
  const std::int64_t cuts =
      std::min<std::int64_t>(config.train.reproducible ? config.train.micro_shards : ranks, samples);
  const std::int64_t batch = std::min(most, (samples + cuts - 1) / cuts);
  batches.assign(static_cast<std::size_t>(std::min<std::int64_t>(ranks, (samples + batch - 1) / batch)), batch);
  return batches;
}

}  // namespace echelon::inline config
