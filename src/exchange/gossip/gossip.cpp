// SPDX-License-Identifier: Apache-2.0
// Gossip: every replica takes its own optimiser steps and after each mixes its weights with those of a few neighbours
// (exchange/gossip/topology.hpp: P, whose columns sum to 1), so that no step waits for all replicas.
//
//   mix_after    x_i <- sum_j P_ij (x_j - f(g_j(z_j)))       SGP: Assran et al., ICML 2019, algorithm 1
//   mix_before   x_i <- sum_j P_ij x_j - f(g_i(z_i))         D-PSGD: Lian et al., NIPS 2017, algorithm 1
//   w_i <- sum_j P_ij w_j;  z_i = x_i / w_i                  the arenas hold z_i, at which the gradient is computed
//
// f is the optimiser's step; its states stay local. The push-sum weights w are 1 at the start and stay 1 in balanced
// graphs, where they are not sent. With mix_before weights are exchanged during the forward and backward passes.
// Running statistics of batch norm are mixed like weights.
//
// Gradients are divided by W / k, the mean weight of a replica's samples in the step: the mean of all replicas then
// moves by the gradient of all samples, even with unequal shares.
//
// Every `consensus_every` steps, and at the end of an epoch, all replicas meet. m = sum_i w_i z_i / k, computed with
// exchange.algorithm, is the model that is tested, compared and saved. Replicas continue from m + w_i (z_i - m) with
// w_i = 1, which keeps the mean; without push-sum these are their own weights.
//
// Checkpoints hold m and, per replica, w_i (z_i - m); another number of replicas starts at m. Per step a replica sends
// the bytes of all weights to each of its receivers, whose number does not depend on k (except for topology
// `complete`), and an all-reduce at a meeting. Memory: one arena; a second one for mix_before or topology `random`.
#include <fmt/format.h>

#include <optional>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/spans.hpp"
#include "base/text.hpp"
#include "exchange/averaging/local_steps.hpp"
#include "exchange/entry.hpp"
#include "exchange/facets.hpp"
#include "exchange/gossip/neighbour_sums.hpp"
#include "exchange/living.hpp"

namespace echelon::inline exchange {
namespace {

class Gossip final : public LocalSteps, public Rescues {
 public:
  Gossip(const ExchangeConfig& config, const StrategyContext& context)
      : LocalSteps(context), keys_(config.gossip), graph_(config.gossip, context.engine.size(), context.seed) {
    if (config.codec != kNoCodec.name)
      throw ConfigError(
          fmt::format("exchange.codec '{}' cannot be combined with strategy 'gossip', which sends uncoded weights; "
                      "nearest valid: 'none'",
                      config.codec));
    deviation_ = pass().arena("deviation from the mean of all replicas");
    if (before() || !graph_.balanced()) aside_ = pass().arena("weights mixed by gossip");
    mixed_.emplace(context, buckets(config), before() ? aside_.data() : context.arenas.gradients_at(0), graph_);
    open_sums(config, context.first_channel + mixed_->channels());
  }

  Progress progress() const override { return {.meets = Progress::Meets::by_period, .period = keys_.consensus_every}; }
  double divisor(const StepInfo& info) const override { return info.weight > 0 ? info.weight / replicas() : 1; }

  void begin_step(const StepInfo& info) override {
    LocalSteps::begin_step(info);
    if (replicas() == 1) return;
    leave_mean();
    if (!before()) return;
    pass().copy_weights_to(aside_);
    pass().scale(aside_.data(), graph_.share() * weight_);
    send_share();
  }

  StepOutcome end_step() override {
    count_step();
    if (replicas() == 1)
      apply();
    else
      before() ? update_mixed() : mix_updated();
    if (account().info().meets && replicas() > 1) meet();
    return take_outcome();
  }

  // The remaining replicas continue as after a meeting, each from its own weights. Messages in flight are lost, and so
  // are push-sum weights, which become 1.
  bool rescue(Group& living, const std::vector<int>&) override {
    leave_mean();
    pass().copy_weights_to(deviation_);
    average_weights(living, context().arenas);
    pass().add(deviation_.data(), weights(), -1);
    weight_ = 1;
    at_mean_ = true;
    drain();
    return true;
  }
  void visit_state(StateVisitor& visitor) override {
    pass().visit_by_replica(visitor, "strategy/deviation", deviation_.data(), position(), OtherK::reset);
    pass().visit_local_states(visitor, context().optimiser, position());
    visit_local_scaling(visitor, context().optimiser.scaling(), position(), context().part);
  }
  // The mean over the steps so far; before the first step, that of a long run.
  double formula_bytes_per_step() const override {
    if (replicas() == 1) return 0;
    return mixed_->formula_bytes() +
           sums().formula_bytes() * (steps() > 0 ? static_cast<double>(meetings_) / static_cast<double>(steps())
                                                 : 1 / static_cast<double>(keys_.consensus_every));
  }
  std::string describe() const override {
    if (replicas() == 1) return "gossip, one replica: nothing to exchange";
    const auto elem = static_cast<double>(size_of(context().arenas.dtype()));
    return fmt::format("gossip over {} replicas, {}, {} to {} a step, {}; mean every {} by {}", replicas(),
                       keys_.push_sum ? "push-sum" : "symmetric mixing",
                       bytes_text(static_cast<double>(context().arenas.elems()) * elem),
                       counted(graph_.links() / replicas(), "neighbour"),
                       before() ? "mixed during back-propagation" : "mixed after the update",
                       counted(keys_.consensus_every, "step"), sums().describe());
  }

 private:
  bool before() const { return keys_.order == MixingOrder::mix_before; }

  // Replaces the mean, which the arenas hold after a meeting, by this replica's own weights.
  void leave_mean() {
    if (!at_mean_) return;
    at_mean_ = false;
    pass().add(weights(), deviation_.data());
    context().arenas.touch();
  }

  void send_share() {
    if (!graph_.balanced()) weight_ *= graph_.share();
    mixed_->submit(account().info().step, weight_);
  }

  // mix_after: the buffer gets P_ii x_i of the updated weights, with x_i = (z_i after the update) + (w_i - 1) (z_i
  // before it).
  void mix_updated() {
    const bool weighted = weight_ != 1;
    if (weighted) {
      pass().copy_weights_to(aside_);
      pass().scale(aside_.data(), graph_.share() * (weight_ - 1));
    }
    apply();
    {
      const SpanTimer timer(account().outcome().optimiser_s, SpanKind::optimiser);
      pass().put_share(graph_.share(), weights(), nullptr);
      if (weighted) pass().add_to_buffer(aside_.data());
    }
    send_share();
    mixed_->settle(account());
    const SpanTimer timer(account().outcome().optimiser_s, SpanKind::optimiser);
    pass().take(weights());
    context().arenas.clear_tables();
    remove_bias();
  }

  // mix_before: the mixed weights are in `aside_`, to which this replica's update is added.
  void update_mixed() {
    mixed_->settle(account());
    pass().add(aside_.data(), weights(), -1);
    apply();
    const SpanTimer timer(account().outcome().optimiser_s, SpanKind::optimiser);
    pass().add(weights(), aside_.data());
    remove_bias();
  }

  // z_i = x_i / w_i
  void remove_bias() {
    if (weight_ != 1) pass().scale(weights(), 1 / weight_);
    context().arenas.touch();
  }

  void meet() {
    ++meetings_;
    {
      const SpanTimer timer(account().outcome().optimiser_s, SpanKind::optimiser);
      pass().put_share(weight_ / replicas(), weights(), nullptr);
    }
    sums().sum(account().info().step, account());
    const SpanTimer timer(account().outcome().optimiser_s, SpanKind::optimiser);
    pass().copy_weights_to(deviation_);
    account().outcome().drift = pass().distance_from_buffer(deviation_.data());
    if (weight_ != 1) pass().scale(deviation_.data(), weight_);
    weight_ = 1;
    pass().take(weights());
    end_meeting();
    at_mean_ = true;
  }

  GossipKeys keys_;
  GossipGraph graph_;
  Memory deviation_, aside_;  // of the arena's size; `aside_` holds what is sent (mix_before) or (w_i - 1) z_i
  std::optional<NeighbourSums> mixed_;
  double weight_ = 1;    // w_i of push-sum
  bool at_mean_ = true;  // the arena's weights are the mean, not this replica's
  std::int64_t meetings_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_gossip(const ExchangeConfig& config, const StrategyContext& context) {
  return std::make_unique<Gossip>(config, context);
}

}  // namespace echelon::inline exchange
