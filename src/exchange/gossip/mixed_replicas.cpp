// SPDX-License-Identifier: Apache-2.0
#include "exchange/gossip/mixed_replicas.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/spans.hpp"
#include "config/traits/codecs.hpp"
#include "exchange/living.hpp"

namespace echelon::inline exchange {

MixedReplicas::MixedReplicas(const ExchangeConfig& config, const StrategyContext& context, std::int64_t consensus_every)
    : LocalSteps(context), consensus_every_(consensus_every) {
  if (config.codec != kNoCodec.name)
    throw ConfigError(
        fmt::format("exchange.codec '{}' cannot be combined with strategy '{}', which sends uncoded weights; "
                    "nearest valid: 'none'",
                    config.codec, config.strategy));
  deviation_ = pass().arena("deviation from the mean of all replicas");
}

bool MixedReplicas::rescue(Group& living, const std::vector<int>&) {
  leave_mean();
  pass().copy_weights_to(deviation_);
  average_weights(living, context().arenas);
  pass().add(deviation_.data(), weights(), -1);
  shift_state(-1);
  at_mean_ = true;
  drain();
  return true;
}

void MixedReplicas::visit_state(StateVisitor& visitor) {
  pass().visit_by_replica(visitor, "strategy/deviation", deviation_.data(), position(), OtherK::reset);
  pass().visit_local_states(visitor, context().optimiser, position());
  visit_local_scaling(visitor, context().optimiser.scaling(), position(), context().part);
}

double MixedReplicas::meetings_per_step() const {
  return steps() > 0 ? static_cast<double>(meetings_) / static_cast<double>(steps())
                     : 1 / static_cast<double>(consensus_every_);
}

void MixedReplicas::leave_mean() {
  if (!at_mean_) return;
  at_mean_ = false;
  shift_state(1);
  pass().add(weights(), deviation_.data());
  context().arenas.touch();
}

void MixedReplicas::meet(double weight) {
  ++meetings_;
  {
    const SpanTimer timer(account().outcome().optimiser_s, SpanKind::optimiser);
    pass().put_share(weight / replicas(), weights(), nullptr);
  }
  sums().sum(account().info().step, account());
  const SpanTimer timer(account().outcome().optimiser_s, SpanKind::optimiser);
  pass().copy_weights_to(deviation_);
  account().outcome().drift = pass().distance_from_buffer(deviation_.data());
  if (weight != 1) pass().scale(deviation_.data(), weight);
  pass().take(weights());
  shift_state(-1);
  end_meeting();
  at_mean_ = true;
}

}  // namespace echelon::inline exchange
