// SPDX-License-Identifier: Apache-2.0
// Strategies with parameter servers: server, backup, asynchronous, stale_synchronous.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "comm/protocol/driver.hpp"
#include "exchange/asynchronous/rules.hpp"
#include "planner/pace.hpp"
#include "planner/strategy_models.hpp"
#include "planner/virtual_served.hpp"

namespace echelon::inline planner {
namespace {

// The differences between strategies with servers.
struct ServedModel {
  double (*formula_s)(const StrategySetting& setting, int replicas);
  double (*simulated_s)(const StrategySetting& setting, int replicas);
  bool cuts_parts = false;  // sends parts as messages of segment_kb; otherwise the driver cuts them into frames
  bool drops = false;       // drops gradients that arrive too late
};

const ServedModel& model_of(const StrategySetting& setting);

// The traffic of a step through the busiest card, one way, in multiples of the whole gradient.
struct Load {
  double pushed = 0, pulled = 0;
  bool apart = false;  // pushes and pulls load different cards, or the two directions of one card
  double servers = 1;
  Link link;
};

// `alone`: the traffic of one replica while no other sends.
Load load_of(const StrategySetting& setting, int replicas, bool alone) {
  const ExchangeConfig& exchange = setting.exchange();
  const double k = replicas, g = std::min(setting.pricer.ranks_a_host(), replicas);
  const bool one_host = replicas <= setting.pricer.ranks_a_host() && exchange.server.ranks == 0;
  Load load{.link = one_host ? setting.network().inside : setting.network().between};
  if (exchange.server.ranks > 0) {
    load.servers = static_cast<double>(exchange.server.ranks);
    load.apart = true;
    load.pushed = load.pulled = alone ? 1 : std::max(g, k / load.servers);
    return load;
  }
  load.servers = exchange.servers > 0 ? static_cast<double>(std::min<std::int64_t>(exchange.servers, replicas)) : k;
  const double remote = one_host ? (k - 1) / k : g * (k - g) / k;  // fraction of a host's pushes that leave it
  load.apart = load.servers < k;
  load.pushed = load.pulled = alone              ? (load.servers - 1) / load.servers
                              : load.servers < k ? remote * k / load.servers
                                                 : remote;
  return load;
}

// Bytes of one message on the card.
double message_bytes(const StrategySetting& setting) {
  return model_of(setting).cuts_parts ? setting.exchange().segment_kb * 1024 : kFrameBytes;
}

// Seconds for which messages occupy the card in addition to their bytes, which take `wire_s`: half a latency for each
// server's part, or for each piece of it.
double messages_s(const StrategySetting& setting, const Load& load, double loads, double wire_s) {
  const double message_s = message_bytes(setting) / load.link.bytes_per_s;
  const double pieces = std::max(1.0, std::ceil(wire_s / load.servers / message_s));
  return loads * load.servers * pieces * load.link.latency_s / 2;
}

double wire_s(const StrategySetting& setting, const GradientBucket& gradient, const Link& link) {
  return static_cast<double>(gradient.elems) * wire_bytes_of_value(setting, gradient) / link.bytes_per_s;
}

Waits waits_of(const StrategySetting& setting) {
  return setting.config.optimiser.clip_norm > 0 ? Waits::buckets : Waits::layers;
}

// The servers do the optimiser's work, each for its part.
StepShape served_shape(const StrategySetting& setting, int replicas, double factor) {
  StepShape shape = setting.shape(factor);
  shape.optimiser_s /= load_of(setting, replicas, false).servers;
  return shape;
}

double own_pace_s(const StrategySetting& setting, int replicas, double factor) {
  const double alone = period_s(setting.shape(factor), served_stages(setting, replicas, true), waits_of(setting),
                                setting.exchange().priority);
  return std::max(alone, served_card_s(setting, replicas));
}

}  // namespace

std::vector<OverlapBucket> served_stages(const StrategySetting& setting, int replicas, bool alone) {
  const Load load = load_of(setting, replicas, alone);
  const bool coded = setting.exchange().codec != "none" && setting.codec_takes_time;
  std::vector<OverlapBucket> buckets;
  for (const GradientBucket& gradient : setting.work.buckets) {
    const auto elems = static_cast<double>(gradient.elems);
    const double wire = wire_s(setting, gradient, load.link), raw = elems * setting.work.elem_bytes;
    const double message = std::min(wire / load.servers, message_bytes(setting) / load.link.bytes_per_s);
    OverlapBucket bucket{.ready = gradient.ready, .needed = gradient.needed, .share = 1, .stages = {}};
    bucket.share = elems / static_cast<double>(setting.work.elems);
    const Stage push{.card = 0,
                     .busy_s = load.pushed * wire + messages_s(setting, load, load.pushed, wire),
                     .latency_s = load.link.latency_s / 2,
                     .hops = 1,
                     .piece_s = message};
    const Stage pull{.card = load.apart ? 1 : 0,
                     .busy_s = load.pulled * wire + messages_s(setting, load, load.pulled, wire),
                     .latency_s = load.link.latency_s / 2,
                     .hops = 1,
                     .piece_s = message};
    const CodecSpeed& speed = setting.step.codec_speed(setting.exchange().codec);
    const double enc = raw / speed.encode_bytes_per_s, dec = raw / speed.decode_bytes_per_s;
    const double workers = alone ? 1 : replicas;
    if (coded)
      bucket.stages = {{.card = 2, .busy_s = enc},
                       push,
                       {.card = 2, .busy_s = workers / load.servers * dec + enc / load.servers},
                       pull,
                       {.card = 2, .busy_s = dec}};
    else
      bucket.stages = {push, pull};
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

double served_card_s(const StrategySetting& setting, int replicas) {
  const Load load = load_of(setting, replicas, false);
  const double loads = load.apart ? std::max(load.pushed, load.pulled) : load.pushed + load.pulled;
  double busy_s = 0;
  for (const GradientBucket& gradient : setting.work.buckets) {
    const double wire = wire_s(setting, gradient, load.link);
    busy_s += loads * wire + messages_s(setting, load, loads, wire);
  }
  return busy_s;
}

namespace {

double synchronous_served_s(const StrategySetting& setting, int replicas) {
  const std::vector<OverlapBucket> buckets = served_stages(setting, replicas, false);
  return setting.over_slowest(replicas, [&](double factor) {
    return period_s(served_shape(setting, replicas, factor), buckets, waits_of(setting), setting.exchange().priority);
  });
}

}  // namespace

// Simulates kFew workers and so few dedicated servers that each carries as many bytes as in the run. The formula adds
// the effect of the variation of all replicas.
double few_dedicated_s(const StrategySetting& setting, int replicas) {
  constexpr int kFew = 8;
  const auto servers = static_cast<double>(setting.exchange().server.ranks);
  const double fewer = std::clamp(std::round(servers * kFew / replicas), 1.0, static_cast<double>(kFew));
  Config config = setting.config;
  config.exchange.server.ranks = static_cast<std::int64_t>(fewer);
  Network network = setting.network();
  network.between.bytes_per_s *= std::min(1.0, kFew / fewer / (replicas / servers));
  PlanPricer pricer(network, 1);
  StrategySetting few{.config = config, .work = setting.work, .step = setting.step, .pricer = pricer};
  few.step.variation = Variation();
  if (!can_simulate_served(few, kFew)) return served_formula_s(setting, replicas);
  StrategySetting equal = setting;
  equal.step.variation = Variation();
  return simulated_served_s(few, kFew) + served_formula_s(setting, replicas) - served_formula_s(equal, replicas);
}

// Gradients that arrive too late occupy cards too, which the formula leaves out; the ratio of simulation to formula for
// few replicas accounts for this.
double many_backups_s(const StrategySetting& setting, int replicas) {
  constexpr int kFew = 8;
  const double closed_s = served_formula_s(setting, replicas);
  if (replicas <= kFew || !can_simulate_served(setting, kFew)) return closed_s;
  const std::string key = fmt::format("backup {} {} {} {} {} {}", setting.exchange().backup.of(kFew),
                                      setting.exchange().servers, setting.exchange().server.ranks,
                                      setting.step.total_s(), setting.step.variation.quantile(0.9), setting.work.elems);
  return closed_s *
         setting.pricer.once(key, [&] { return simulated_served_s(setting, kFew) / served_formula_s(setting, kFew); });
}

namespace {

// The largest error of the closed forms against the simulation, as a fraction of the exchange
// (tests/unit/planner/test_served). Urgent buckets wait for messages that have already left; with few long messages
// this matters most.
double served_error(const StrategySetting& setting) {
  const ExchangeConfig& exchange = setting.exchange();
  if (model_of(setting).drops || exchange.server.ranks > 0 || exchange.servers > 0) return 0.3;
  return exchange.priority && setting.work.buckets.size() > 1 ? 0.15 : 0.02;
}

// The step if nothing of the exchange is hidden by compute.
double bare_s(const StrategySetting& setting, int replicas) {
  const std::vector<OverlapBucket> buckets = served_stages(setting, replicas, false);
  return setting.over_slowest(replicas, [&](double factor) {
    return period_s(served_shape(setting, replicas, factor), buckets, Waits::none, setting.exchange().priority);
  });
}

double served_s(const StrategySetting& setting, int replicas) {
  if (can_simulate_served(setting, replicas)) {
    const double hiding_s = simulated_served_s(setting, replicas);
    if (setting.step.overlap == 1) return hiding_s;
    return std::lerp(std::max(hiding_s, bare_s(setting, replicas)), hiding_s, setting.step.overlap);
  }
  setting.pricer.note_formula(served_error(setting));
  if (model_of(setting).drops) return many_backups_s(setting, replicas);
  if (setting.exchange().server.ranks > 0 && setting.exchange().codec == "none" && setting.pricer.ranks_a_host() == 1)
    return few_dedicated_s(setting, replicas);
  return served_formula_s(setting, replicas);
}

// A late replica drops its gradient and joins the open step, so a step takes as long as the slowest replica that it
// needs.
double backup_formula_s(const StrategySetting& setting, int replicas) {
  const std::int64_t needed = replicas - std::min<std::int64_t>(replicas - 1, setting.exchange().backup.of(replicas));
  const std::vector<OverlapBucket> buckets = served_stages(setting, replicas, false);
  const double latency_s = load_of(setting, replicas, false).link.latency_s;
  // The coordinator receives one message per replica and answers.
  const double gate_s = 2 * latency_s + replicas * latency_s / 2;
  const auto seconds = [&](double factor) {
    return period_s(served_shape(setting, replicas, factor), buckets, Waits::barrier, setting.exchange().priority,
                    gate_s);
  };
  if (needed == replicas) return setting.over_slowest(replicas, seconds);
  return seconds(setting.step.variation.in_place(needed, replicas));
}

double own_pace_formula_s(const StrategySetting& setting, int replicas) {
  const double free_s = setting.over_slowest(1, [&](double factor) { return own_pace_s(setting, replicas, factor); });
  const std::optional<std::int64_t> bound = async_bound(setting.exchange());
  return bound ? free_s * bounded_pace(setting.step.variation, replicas, *bound) : free_s;
}

constexpr ServedModel kStepTogether{
    .formula_s = synchronous_served_s, .simulated_s = simulated_server_s, .cuts_parts = true};
constexpr ServedModel kLeaveLateOut{.formula_s = backup_formula_s, .simulated_s = simulated_backup_s, .drops = true};
constexpr ServedModel kOwnPace{.formula_s = own_pace_formula_s, .simulated_s = simulated_async_s};

const ServedModel& model_of(const StrategySetting& setting) {
  const StrategyTraits strategy = strategy_traits(setting.exchange().strategy);
  ECHELON_CHECK(strategy.has_servers(), "strategy {} has no servers", strategy.name);
  return strategy.own_pace ? kOwnPace : strategy.skips_steps ? kLeaveLateOut : kStepTogether;
}

}  // namespace

double served_formula_s(const StrategySetting& setting, int replicas) {
  return model_of(setting).formula_s(setting, replicas);
}
double simulated_served_s(const StrategySetting& setting, int replicas) {
  return model_of(setting).simulated_s(setting, replicas);
}

double backup_step_s(const StrategySetting& setting, int replicas) { return served_s(setting, replicas); }
double server_step_s(const StrategySetting& setting, int replicas) { return served_s(setting, replicas); }
double asynchronous_step_s(const StrategySetting& setting, int replicas) { return served_s(setting, replicas); }
double stale_synchronous_step_s(const StrategySetting& setting, int replicas) { return served_s(setting, replicas); }

}  // namespace echelon::inline planner
