// SPDX-License-Identifier: Apache-2.0
// Parameter averaging (local SGD): every replica takes its own optimiser steps with the mean gradient of its own
// samples. Every H steps, and at the end of an epoch, the weights are averaged over the replicas, each weighted with
// the number of samples that it has seen since the last averaging (Stich, ICLR 2019; Lin et al., ICLR 2020).
//
//   x_i <- x_i - f(g_i)                      each step
//   mean = sum_i (n_i / n) x_i               every H steps, with exchange.algorithm
//   x_i <- mean                              without an outer step
//
// With an outer step, a being the weights of the last averaging, D = mean - a, m outer_momentum and o outer_rate:
//
//   heavy_ball   v <- m (r / r') v + o D;  x_i <- a + v    r and r' are the learning rates of this averaging and the
//   last
//                                            (block momentum: Chen, Huo, ICASSP 2016; SlowMo: Wang et al., ICLR 2020)
//   nesterov     v <- m v + D;  x_i <- a + o (D + m v)     independent of the learning rate (DiLoCo: Douillard et al.,
//                                            2023, arXiv 2311.08105; on one replica SNOO: arXiv 2510.15830)
//
// Running statistics of batch norm are averaged like weights and take no outer step. Optimiser states are averaged,
// zeroed or kept (exchange.averaging.states). In the first `synchronous_epochs` gradients are summed in every step
// instead (post-local SGD), uncoded. With H = 1 and plain SGD the weights are those of synchronous training.
//
// A codec codes shares of changes, (n_i / n) (x_i - a), whose residual stays on the replica; optimiser states are
// uncoded.
//
// An averaging sends the bytes of one all-reduce, and as many for each averaged state. The gradient arena holds the
// sums, so that additional memory is needed only for a (one arena, if changes are sent) and for v (one arena).
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "base/spans.hpp"
#include "base/text.hpp"
#include "exchange/averaging/local_steps.hpp"
#include "exchange/entry.hpp"
#include "exchange/facets.hpp"
#include "exchange/living.hpp"
#include "exchange/residual_state.hpp"

namespace echelon::inline exchange {
namespace {

class Averaging final : public LocalSteps, public Rescues {
 public:
  Averaging(const ExchangeConfig& config, const StrategyContext& context)
      : LocalSteps(context),
        keys_(config.averaging),
        synchronous_steps_(keys_.synchronous_epochs * context.steps_per_epoch) {
    open_sums(config, context.first_channel);
    ExchangeConfig plain = config;
    plain.codec = kNoCodec.name;
    if (config.codec != plain.codec)
      uncoded_.emplace(plain, context, buckets(plain), context.first_channel + sums().channels());
    sends_changes_ = config.codec != plain.codec || outer();
    if (sends_changes_) anchor_ = pass().arena("weights of the last averaging");
    if (outer()) velocity_ = pass().arena("outer momentum");
  }

  Progress progress() const override {
    return {.meets = Progress::Meets::by_period, .period = keys_.period, .every_step_until = synchronous_steps_};
  }
  double divisor(const StepInfo& info) const override {
    return is_synchronous(info) ? info.weight : info.local_weight > 0 ? info.local_weight : 1;
  }

  void begin_step(const StepInfo& info) override {
    LocalSteps::begin_step(info);
    if (!anchored_ && sends_changes_ && !is_synchronous(info)) pass().copy_weights_to(anchor_);
    anchored_ = !is_synchronous(info);
  }

  StepOutcome end_step() override {
    const StepInfo& info = account().info();
    count_step();
    if (is_synchronous(info)) {
      sum(uncoded(), info.step);
      apply();
    } else {
      if (info.local_weight > 0) apply();
      own_weight_ += info.local_weight;
      all_weight_ += info.weight;
      if (info.meets) average();
    }
    return take_outcome();
  }

  bool rescue(Group& living, const std::vector<int>&) override {
    echelon::average_weights(living, context().arenas);
    return true;
  }
  void visit_state(StateVisitor& visitor) override {
    LocalSteps::visit_state(visitor);
    if (outer()) {
      pass().visit_whole(visitor, "strategy/outer_momentum", velocity_);
      visitor.scalar("strategy_outer_learning_rate", outer_learning_rate_, Absent::kept_in_other_run);
    }
    if (keys_.states == AveragedStates::local) pass().visit_local_states(visitor, context().optimiser, position());
    if (visitor.loading()) anchored_ = false;
  }
  // The mean over the steps so far; before the first step, that of a long run.
  double formula_bytes_per_step() const override {
    return steps() > 0 ? formula_bytes_ / static_cast<double>(steps())
                       : formula_of_averaging() / static_cast<double>(keys_.period);
  }

  std::string describe() const override {
    std::string text = fmt::format("averaging every {}", counted(keys_.period, "step"));
    text += outer_text(keys_);
    if (synchronous_steps_ > 0) text += fmt::format(", synchronous for {}", counted(keys_.synchronous_epochs, "epoch"));
    if (replicas() == 1) return text + "; one replica: nothing to exchange";
    const double bytes =
        static_cast<double>(context().arenas.elems()) * static_cast<double>(size_of(context().arenas.dtype()));
    const char* states = keys_.states == AveragedStates::average ? "averaged"
                         : keys_.states == AveragedStates::reset ? "reset"
                                                                 : "local";
    return text + fmt::format(", {} over {} replicas, {} of weights, optimiser states {}", sums().describe(),
                              replicas(), bytes_text(bytes), states);
  }

 private:
  bool outer() const { return keys_.outer(); }
  bool is_synchronous(const StepInfo& info) const { return info.step < synchronous_steps_; }
  BucketSums& uncoded() { return uncoded_ ? *uncoded_ : sums(); }
  double formula_of_averaging() const {
    const int states = keys_.states == AveragedStates::average ? context().optimiser.states() : 0;
    return sums().formula_bytes() + states * (uncoded_ ? *uncoded_ : sums()).formula_bytes();
  }

  // Sums the values in the gradient arena over the replicas.
  void sum(BucketSums& sums, std::int64_t step) {
    sums.sum(step, account());
    formula_bytes_ += sums.formula_bytes();
  }

  void average() {
    const double share = all_weight_ > 0 ? own_weight_ / all_weight_ : 1.0 / replicas();
    own_weight_ = all_weight_ = 0;
    if (replicas() > 1 || sends_changes_) average_weights(share);
    Optimiser& optimiser = context().optimiser;
    for (int s = 0; s < optimiser.states(); ++s) {
      if (keys_.states == AveragedStates::reset) pass().clear(optimiser.state(s));
      if (keys_.states != AveragedStates::average || replicas() == 1) continue;
      pass().put_share(share, optimiser.state(s), nullptr);
      sum(uncoded(), account().info().step);
      pass().take(optimiser.state(s));
    }
    if (keys_.states == AveragedStates::reset) optimiser.begin_states(account().info().step + 1);
    context().arenas.clear_tables();
  }

  void average_weights(double share) {
    {
      const SpanTimer timer(account().outcome().optimiser_s, SpanKind::optimiser);
      pass().put_share(share, weights(), sends_changes_ ? anchor_.data() : nullptr);
    }
    sum(sums(), account().info().step);
    const SpanTimer timer(account().outcome().optimiser_s, SpanKind::optimiser);
    if (sends_changes_) pass().add_to_buffer(anchor_.data());
    account().outcome().drift = pass().distance_from_buffer(weights());
    if (outer()) {
      const double rate = account().info().learning_rate, before = std::exchange(outer_learning_rate_, rate);
      const double scale = keys_.nesterov() ? 1 : before > 0 ? rate / before : 0;
      pass().step_outwards({keys_.outer_momentum * scale, keys_.outer_rate, keys_.nesterov()}, anchor_, velocity_);
    }
    pass().take(weights());
    if (sends_changes_) pass().copy_weights_to(anchor_);
    context().arenas.touch();
  }

  AveragingKeys keys_;
  std::int64_t synchronous_steps_;
  std::optional<BucketSums> uncoded_;  // for sums of states and gradients if weights are coded
  bool sends_changes_ = false;
  bool anchored_ = false;     // `anchor_` holds the weights of the last averaging
  Memory anchor_, velocity_;  // of the arena's size, or empty
  double outer_learning_rate_ = 0;
  double own_weight_ = 0, all_weight_ = 0;  // numbers of samples since the last averaging
  double formula_bytes_ = 0;
};

}  // namespace

std::string outer_text(const AveragingKeys& keys) {
  if (!keys.outer()) return "";
  return fmt::format(", outer {}momentum {}, outer rate {}", keys.nesterov() ? "Nesterov " : "", keys.outer_momentum,
                     keys.outer_rate);
}

std::unique_ptr<Strategy> make_averaging(const ExchangeConfig& config, const StrategyContext& context) {
  return std::make_unique<Averaging>(config, context);
}

}  // namespace echelon::inline exchange
