// SPDX-License-Identifier: Apache-2.0
// The seconds from step to step under each exchange strategy: the mean time of a replica's step, including all waits.
// Each strategy has one function, named after it, so that a strategy without a model does not link.
//
// F, B, O, D are the means of forward, back-propagation, optimiser and input of one replica; X_i is the factor by which
// the step of replica i varies (variation.hpp); buckets overlap with the step as in card_queue.hpp.
//
//   synchronous        overlap (max X_i (D, F, B, O), all-reduce of each bucket)
//   server             overlap (max X_i (D, F, B, O / servers), push and pull of each bucket)
//   backup             overlap of the replica in place k - r; pulls follow all pushes and the verdict
//   averaging, elastic max over replicas of the mean of H steps + all-reduce / H
//   gossip             replicas wait for their neighbours only: rounds on virtual time; + transfer, + mean / N
//   noloco             as averaging; a round of messages inside groups / H, + mean / N
//   asynchronous       overlap (X_1 (D, F, B, O), push and pull), at least the time of the servers' cards for all
//   stale_synchronous  as asynchronous, but starts wait as the bound demands: rounds on virtual time
//   strom              max X_i + messages to all others; asynchronous rounds have no max
//
// A message to or from a parameter server occupies its card for bytes over bandwidth and half a latency; each stage
// takes another half latency. The ranks of a host share its card.
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
  // The mean of `seconds(factor)` over quantiles of the largest factor of k replicas.
  template <class Seconds>
  double over_slowest(int k, const Seconds& seconds) const;
};

#define X(strategy, ...) double strategy##_step_s(const StrategySetting& setting, int replicas);
ECHELON_STRATEGIES(X)
#undef X

// Finds the model by exchange.strategy. A single replica has no exchange.
double strategy_step_s(const StrategySetting& setting, int replicas);

// Expected bytes on the wire for each value of a bucket (comm/codec/codec.hpp).
double wire_bytes_of_value(const StrategySetting& setting, const GradientBucket& bucket);

// The all-reduce that sums the gradients of a bucket, by the config and its codec; `auto` is the cheapest.
Collective gradient_collective(const StrategySetting& setting, int replicas, const GradientBucket& bucket);
// The stages of each bucket: the codec's on the processor (card 1), the all-reduce's on the network card (0).
std::vector<OverlapBucket> gradient_stages(const StrategySetting& setting, int replicas);
// Seconds of that all-reduce for all buckets together, each repeated `times` times (averaged optimiser states).
double whole_allreduce_s(const StrategySetting& setting, int replicas, double times);

// The closed form of server, backup, asynchronous and stale_synchronous. Their protocols run on virtual time
// (virtual_served.hpp) if that is quick.
double served_formula_s(const StrategySetting& setting, int replicas);
// For dedicated servers: simulates 8 workers and so few servers that each carries as many bytes as in the run.
double few_dedicated_s(const StrategySetting& setting, int replicas);
// For gossip: seconds of a round of messages to neighbours, in closed form and by their plans on virtual time.
double mixing_formula_s(const StrategySetting& setting, int replicas);
bool can_simulate_mixing(const StrategySetting& setting, int replicas);
double simulated_mixing_s(const StrategySetting& setting, int replicas);
// For more backup workers than can be simulated: the formula times the ratio of simulation to formula for 8 replicas.
double many_backups_s(const StrategySetting& setting, int replicas);
// The push to the servers and the pull from them, by bucket; `alone`: no other replica sends.
std::vector<OverlapBucket> served_stages(const StrategySetting& setting, int replicas, bool alone);
// Seconds for which a step of all replicas occupies the busiest server's card.
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
