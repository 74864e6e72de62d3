// SPDX-License-Identifier: Apache-2.0
// Strategies that sum over all replicas: synchronous, averaging, elastic.
#include <algorithm>
#include <cmath>
#include <limits>

#include "comm/collective/algorithms.hpp"
#include "config/traits/codecs.hpp"
#include "exchange/allreduce_request.hpp"
#include "exchange/entry.hpp"
#include "optim/rules.hpp"
#include "planner/strategy_models.hpp"

namespace echelon::inline planner {
namespace {

// A rank's part of a bucket begins within a row, which two messages then hold: one more pair of means, and of the bits
// half a word on average.
constexpr double kCutRow_bytes = 8 + 2;

int hops_of(const Collective& sum, int replicas) {
  if (algorithm_traits(sum.algorithm).library) return 0;  // the library's algorithm is not known
  if (const int hops = allreduce_model(sum.algorithm).hops; hops > 0) return hops;
  return price_allreduce(sum.algorithm, request_of(sum, replicas)).steps;
}

// Bytes of a message: a segment of the whole buffer, or of an even part for each rank.
double piece_bytes(const Collective& sum, int replicas) {
  const double part = static_cast<double>(sum.elems) / (allreduce_model(sum.algorithm).sends_whole ? 1 : replicas);
  const double segments = sum.segment_elems > 0 ? std::ceil(part / static_cast<double>(sum.segment_elems)) : 1;
  return part / std::max(1.0, segments) * sum.elem_bytes;
}

double busy_s(const std::vector<CardTransfer>& transfers) {
  double last = 0;
  for (const double end_s : ends_of(transfers, false)) last = std::max(last, end_s);
  return last;
}

}  // namespace

double wire_bytes_of_value(const StrategySetting& setting, const GradientBucket& bucket) {
  std::int64_t elems = 0;
  for (const CodedRun& run : bucket.rows) elems += run.elems;
  const DType dtype = setting.work.elem_bytes == size_of(DType::f64) ? DType::f64 : DType::f32;
  return coded_size(setting.exchange().codec, codec_options(setting.exchange(), dtype, bucket.rows),
                    elems > 0 ? elems : bucket.elems)
      .typical;
}

Collective gradient_collective(const StrategySetting& setting, int replicas, const GradientBucket& bucket) {
  const ExchangeConfig& exchange = setting.exchange();
  Collective sum{.algorithm = exchange.algorithm, .elems = bucket.elems};
  sum.elem_bytes = wire_bytes_of_value(setting, bucket);
  sum.segment_elems =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(exchange.segment_kb * 1024 / setting.work.elem_bytes));
  sum.servers = static_cast<int>(std::min<std::int64_t>(exchange.servers, replicas));
  sum.inner = exchange.inner, sum.outer = exchange.outer;
  const CodecRoute route = route_of(exchange);
  if (route == CodecRoute::direct) sum.algorithm = "direct";
  if (route == CodecRoute::gather) sum.algorithm = "naive";
  if (route == CodecRoute::direct && !bucket.rows.empty() && exchange.codec == "onebit")
    sum.elem_bytes += kCutRow_bytes * (replicas - 1) / static_cast<double>(bucket.elems);
  if (!algorithm_traits(sum.algorithm).measured) return sum;
  double best_s = std::numeric_limits<double>::infinity();
  Collective best = sum;
  for (const AllreduceModel& model : allreduce_models()) {
    if (!model.automatic) continue;
    sum.algorithm = model.name;
    if (const double time_s = setting.pricer.cost(sum, replicas).time_s; time_s < best_s) best_s = time_s, best = sum;
  }
  return best;
}

std::vector<OverlapBucket> gradient_stages(const StrategySetting& setting, int replicas) {
  const ExchangeConfig& exchange = setting.exchange();
  const CodecRoute route = route_of(exchange);
  const CodecSpeed& speed = setting.step.codec_speed(exchange.codec);
  std::vector<OverlapBucket> buckets;
  for (const GradientBucket& gradient : setting.work.buckets) {
    const Collective sum = gradient_collective(setting, replicas, gradient);
    const CollectiveCost cost = setting.pricer.cost(sum, replicas);
    const double raw = static_cast<double>(gradient.elems) * setting.work.elem_bytes;
    OverlapBucket bucket{.ready = gradient.ready, .needed = gradient.needed, .share = 1, .stages = {}};
    bucket.share = static_cast<double>(gradient.elems) / static_cast<double>(setting.work.elems);
    const Stage wire{.card = 0,
                     .busy_s = cost.busy_s,
                     .latency_s = cost.time_s - cost.busy_s,
                     .hops = hops_of(sum, replicas),
                     .piece_s = piece_bytes(sum, replicas) / setting.network().between.bytes_per_s};
    if (exchange.codec == "none" || !setting.codec_takes_time) {
      bucket.stages = {wire};
    } else {
      // Buffers that a rank encodes and decodes. Gather: it decodes the messages of all ranks. Direct: it encodes its
      // values and the sums of its part, and decodes the parts that it sums and all sums. Plans that sum on the way
      // count alike.
      const double decoded = route == CodecRoute::gather ? replicas : 2;
      const double encoded = route == CodecRoute::gather ? 1 : 2;
      bucket.stages = {{.card = 1, .busy_s = encoded * raw / speed.encode_bytes_per_s},
                       wire,
                       {.card = 1, .busy_s = decoded * raw / speed.decode_bytes_per_s}};
    }
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

double whole_allreduce_s(const StrategySetting& setting, int replicas, double times) {
  std::vector<CardTransfer> transfers;
  for (OverlapBucket& bucket : gradient_stages(setting, replicas)) {
    for (Stage& stage : bucket.stages) stage.busy_s *= times;
    transfers.push_back({.ready_s = 0, .priority = 0, .stages = std::move(bucket.stages)});
  }
  return busy_s(transfers);
}

double synchronous_step_s(const StrategySetting& setting, int replicas) {
  const std::vector<OverlapBucket> buckets = gradient_stages(setting, replicas);
  const Overlap overlap = setting.exchange().overlap;
  const bool whole = setting.config.optimiser.clip_norm > 0 || setting.config.device.loss_scale > 0;
  const Waits waits = overlap == Overlap::none               ? Waits::none
                      : overlap == Overlap::buckets || whole ? Waits::buckets
                                                             : Waits::layers;
  return setting.over_slowest(replicas, [&](double factor) {
    return period_s(setting.shape(factor), buckets, waits, setting.exchange().priority);
  });
}

double averaging_step_s(const StrategySetting& setting, int replicas) {
  const AveragingKeys& keys = setting.exchange().averaging;
  const auto period = static_cast<double>(keys.period);
  const double states =
      keys.states == AveragedStates::average ? static_cast<double>(rule_of(setting.config.optimiser).arenas()) : 0;
  return setting.step.total_s() * setting.step.variation.largest_of(replicas, period) +
         whole_allreduce_s(setting, replicas, 1 + states) / period;
}

double elastic_step_s(const StrategySetting& setting, int replicas) {
  const auto period = static_cast<double>(setting.exchange().elastic.period);
  return setting.step.total_s() * setting.step.variation.largest_of(replicas, period) +
         whole_allreduce_s(setting, replicas, 1) / period;
}

}  // namespace echelon::inline planner
