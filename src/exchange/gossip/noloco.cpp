// SPDX-License-Identifier: Apache-2.0
// NoLoCo (Kolehmainen et al. 2025, arXiv 2506.10911): local steps and an outer momentum step without an all-reduce.
// Every replica has fast weights x, which its optimiser updates, and slow weights a. Every H steps a permutation of the
// replicas, drawn from (seed, round), is cut into groups (exchange/gossip/topology.hpp); with means over the group,
// outer rate o, outer momentum m and pull p,
//
//   v <- m v + o mean(x - a) + p (mean(a) - a);  a <- a + v;  x <- a
//
// A replica sends one arena: with y = a + (o / p) (x - a), v <- m v + p (mean(y) - a). With p = o, the default, y is x.
// Running statistics of batch norm are averaged like weights and take no outer step. Optimiser states stay
// local. On one replica this is an outer momentum step with its own weights.
//
// Slow weights differ between replicas. Let d be the distance of a from the mean of all. If groups of n are drawn
// from many replicas, E d^2 falls from round to round as long as p < 2 (1 - m^2) / (1 - m + 2 m / n): for pairs
// p < 2 (1 - m^2).
//
// Meetings, at which the mean of all x is formed, are those of exchange/gossip/mixed_replicas.hpp; they change neither
// x nor a. Checkpoints hold that mean and, per replica, the distances of x and a from it, and v; another number of
// replicas starts at the mean with v = 0. In a round a replica sends the bytes of all weights to each other member of
// its group. Memory: three arenas.
#include <fmt/format.h>

#include <algorithm>

#include "base/spans.hpp"
#include "base/text.hpp"
#include "exchange/entry.hpp"
#include "exchange/gossip/mixed_replicas.hpp"
#include "exchange/gossip/neighbour_sums.hpp"

namespace echelon::inline exchange {
namespace {

class NoLoCo final : public MixedReplicas {
 public:
  NoLoCo(const ExchangeConfig& config, const StrategyContext& context)
      : MixedReplicas(config, context, config.noloco.consensus_every),
        keys_(config.noloco),
        graph_(GossipGraph::of_groups(keys_.group, context.engine.size(), context.seed)),
        mixed_(context, buckets(config), context.arenas.gradients_at(0), graph_) {
    slow_ = pass().arena("slow weights");
    velocity_ = pass().arena("outer momentum");
    open_sums(config, context.first_channel + mixed_.channels());
  }

  void begin_step(const StepInfo& info) override {
    LocalSteps::begin_step(info);
    leave_mean();
  }

  StepOutcome end_step() override {
    count_step();
    apply();
    const std::int64_t done = account().info().step + 1;
    if (done % keys_.period == 0) step_outwards(done / keys_.period);
    if (account().info().meets) meet();
    return take_outcome();
  }

  void visit_state(StateVisitor& visitor) override {
    MixedReplicas::visit_state(visitor);
    pass().visit_by_replica(visitor, "strategy/slow_weights", slow_.data(), position(), OtherK::reset);
    pass().visit_by_replica(visitor, "strategy/outer_momentum", velocity_.data(), position(), OtherK::reset);
  }
  double formula_bytes_per_step() const override {
    const double rounds = steps() > 0 ? static_cast<double>(rounds_) / static_cast<double>(steps())
                                      : 1 / static_cast<double>(keys_.period);
    return mixed_.formula_bytes() * rounds + sums().formula_bytes() * meetings_per_step();
  }
  std::string describe() const override {
    const std::string text =
        fmt::format("noloco, an outer step every {} with momentum {}, rate {} and pull {}",
                    counted(keys_.period, "step"), keys_.outer_momentum, keys_.outer_rate, keys_.pull());
    if (replicas() == 1) return text + "; one replica: nothing to exchange";
    const auto elem = static_cast<double>(size_of(context().arenas.dtype()));
    return text + fmt::format(", in random groups of {} of {} replicas, {} to each other member; mean every {} by {}",
                              std::min<std::int64_t>(keys_.group, replicas()), replicas(),
                              bytes_text(static_cast<double>(context().arenas.elems()) * elem),
                              counted(keys_.consensus_every, "step"), sums().describe());
  }

 private:
  void shift_state(double factor) override { pass().add(slow_.data(), weights(), factor); }

  void step_outwards(std::int64_t round) {
    ++rounds_;
    const auto mates = graph_.at(context().engine.rank(), round).send_to.size();
    {
      const SpanTimer timer(account().outcome().optimiser_s, SpanKind::optimiser);
      put_share(1 / static_cast<double>(mates + 1));
    }
    mixed_.submit(round, push_sum_);
    mixed_.settle(account());
    const SpanTimer timer(account().outcome().optimiser_s, SpanKind::optimiser);
    pass().step_outwards({.momentum = keys_.outer_momentum, .rate = keys_.pull()}, slow_, velocity_);
    pass().take(weights());
    pass().copy_weights_to(slow_);
    end_meeting();
  }

  // buffer <- share * y, of running statistics share * x
  void put_share(double share) {
    const double weight_of_x = keys_.outer_rate / keys_.pull();
    if (weight_of_x == 1) return pass().put_share(share, weights(), nullptr);
    pass().put_share(1, weights(), nullptr);
    pass().stretch_buffer(weight_of_x, slow_);
    pass().scale(context().arenas.gradients_at(0), share);
  }

  NoLoCoKeys keys_;
  GossipGraph graph_;
  NeighbourSums mixed_;
  Memory slow_, velocity_;  // a, at meetings its distance from the mean; v
  double push_sum_ = 1;     // groups are balanced: it is not sent
  std::int64_t rounds_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_noloco(const ExchangeConfig& config, const StrategyContext& context) {
  return std::make_unique<NoLoCo>(config, context);
}

}  // namespace echelon::inline exchange
