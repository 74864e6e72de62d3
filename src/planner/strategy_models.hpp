// The seconds from step to step under each exchange strategy: how long a replica needs for a step on average, all that
// it waits for included. One function a strategy, named after it, so that a strategy without a model does not link.
//
// With F, B, O, D the means of forward, back-propagation, optimiser and input of one replica, X_i the factor by which
// the step of replica i varies (variation.hpp), and buckets on their way as card_queue.hpp has it:
//
//   synchronous        overlap (max X_i (D, F, B, O), all-reduce of each bucket)
//   server             overlap (max X_i (D, F, B, O / servers), push and pull of each bucket)
//   backup             overlap of the replica in place k - r, pulls after all pushes and the verdict
//   averaging, elastic max over replicas of the mean of H steps + all-reduce / H
//   gossip             replicas wait for their neighbours alone: rounds drawn on virtual time; + transfer, + mean / N
//   asynchronous       overlap (X_1 (D, F, B, O), push and pull), at least what the servers' cards need for all
//   stale_synchronous  likewise, with starts held as its bound demands: rounds drawn on virtual time
//   strom              max X_i + message to all others, or without the max in asynchronous rounds
//
// Parameter servers are priced as bytes over bandwidth, half a latency a message on the card and half a latency a
// stage. With several ranks a host all of them share its card.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "planner/card_queue.hpp"
#include "planner/plan_pricer.hpp"
#include "planner/step_model.hpp"
#include "planner/workload.hpp"

namespace echelon::inline planner {

struct StrategySetting {
  const Config& config;
  const Workload& work;
  StepModel step;
  PlanPricer& pricer;
  bool codec_takes_time = true;

  const ExchangeConfig& exchange() const { return config.exchange; }
  const Network& network() const { return pricer.network(); }
  StepShape shape(double factor) const;
  // Mean over the slowest of k replicas' quantiles of `seconds(factor)`.
  template <class Seconds>
  double over_slowest(int k, const Seconds& seconds) const;
};

#define X(strategy, ...) double strategy##_step_s(const StrategySetting& setting, int replicas);
ECHELON_STRATEGIES(X)
#undef X

// By the name of exchange.strategy. One replica: the step alone.
double strategy_step_s(const StrategySetting& setting, int replicas);

// What travels for one value of a bucket, in bytes: of exchange.codec as its page has it, of topk and threshold by
// density, of onebit by the rows of the tensors.
double wire_bytes_of_value(const StrategySetting& setting, const GradientBucket& bucket);

// The all-reduce that sums the gradients of a bucket, as the config and its codec have it; `auto` is the cheapest.
Collective gradient_collective(const StrategySetting& setting, int replicas, const GradientBucket& bucket);
// Stages of each bucket of the workload under it: the codec's on the processor (card 1), the plan's on the card (0).
std::vector<OverlapBucket> gradient_stages(const StrategySetting& setting, int replicas);
// Seconds of that all-reduce of all buckets at once, `times` times over (averaged optimiser states).
double whole_allreduce_s(const StrategySetting& setting, int replicas, double times);

// Of server, backup, asynchronous and stale_synchronous, whose machines run on virtual time where that is quick
// (virtual_served.hpp): the formula alone.
double served_formula_s(const StrategySetting& setting, int replicas);
// With dedicated servers: by the machines of 8 workers and as few servers as have as many bytes to carry each.
double few_dedicated_s(const StrategySetting& setting, int replicas);
// Gossip: seconds of a round of messages to neighbours, in closed form and by their plans on virtual time.
double mixing_formula_s(const StrategySetting& setting, int replicas);
bool can_simulate_mixing(const StrategySetting& setting, int replicas);
double simulated_mixing_s(const StrategySetting& setting, int replicas);
// Backup workers that are too many for their machines: the formula by what the machines of 8 take longer than it.
double many_backups_s(const StrategySetting& setting, int replicas);
// Push to the servers and pull from them, by bucket.
std::vector<OverlapBucket> served_stages(const StrategySetting& setting, int replicas, bool alone);
// Seconds that the busiest server's card needs for a step of all replicas.
double served_card_s(const StrategySetting& setting, int replicas);

template <class Seconds>
double StrategySetting::over_slowest(int k, const Seconds& seconds) const {
  constexpr int kQuantiles = 8;
  if (!step.variation.varies()) return seconds(1.0);
  double sum = 0;
  for (int i = 0; i < kQuantiles; ++i) sum += seconds(step.variation.largest_quantile((i + 0.5) / kQuantiles, k));
  return sum / kQuantiles;
}

}  // namespace echelon::inline planner
