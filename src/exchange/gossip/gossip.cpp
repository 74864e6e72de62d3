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
// At meetings (exchange/gossip/mixed_replicas.hpp) m = sum_i w_i z_i / k is the model that is tested, compared and
// saved. Replicas continue from m + w_i (z_i - m) with w_i = 1, which keeps the mean; without push-sum these are their
// own weights.
//
// Checkpoints hold m and, per replica, w_i (z_i - m); another number of replicas starts at m. Per step a replica sends
// the bytes of all weights to each of its receivers, whose number does not depend on k (except for topology
// `complete`), and an all-reduce at a meeting. Memory: one arena; a second one for mix_before or topology `random`.
#include <fmt/format.h>

#include <optional>

#include "base/check.hpp"
#include "base/spans.hpp"
#include "base/text.hpp"
#include "exchange/entry.hpp"
#include "exchange/gossip/mixed_replicas.hpp"
#include "exchange/gossip/neighbour_sums.hpp"

namespace echelon::inline exchange {
namespace {

class Gossip final : public MixedReplicas {
 public:
  Gossip(const ExchangeConfig& config, const StrategyContext& context)
      : MixedReplicas(config, context, config.gossip.consensus_every),
        keys_(config.gossip),
        graph_(config.gossip, context.engine.size(), context.seed) {
    if (before() || !graph_.balanced()) aside_ = pass().arena("weights mixed by gossip");
    mixed_.emplace(context, buckets(config), before() ? aside_.data() : context.arenas.gradients_at(0), graph_);
    open_sums(config, context.first_channel + mixed_->channels());
  }

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
    if (account().info().meets && replicas() > 1) {
      meet(weight_);
      weight_ = 1;
    }
    return take_outcome();
  }

  // Push-sum weights are lost too, and become 1.
  bool rescue(Group& living, const std::vector<int>& lost) override {
    MixedReplicas::rescue(living, lost);
    weight_ = 1;
    return true;
  }
  double formula_bytes_per_step() const override {
    return replicas() > 1 ? mixed_->formula_bytes() + sums().formula_bytes() * meetings_per_step() : 0;
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

  GossipKeys keys_;
  GossipGraph graph_;
  Memory aside_;  // of the arena's size; holds what is sent (mix_before) or (w_i - 1) z_i
  std::optional<NeighbourSums> mixed_;
  double weight_ = 1;  // w_i of push-sum
};

}  // namespace

std::unique_ptr<Strategy> make_gossip(const ExchangeConfig& config, const StrategyContext& context) {
  return std::make_unique<Gossip>(config, context);
}

}  // namespace echelon::inline exchange
