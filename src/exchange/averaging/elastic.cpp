// SPDX-License-Identifier: Apache-2.0
// Elastic averaging (synchronous EASGD: Zhang, Choromanska, LeCun, NIPS 2015, eq. 5 and 6). Every replica takes its own
// optimiser steps. Every H steps, and at the end of an epoch,
//
//   c   <- c + (pull / k) sum_i (x_i - c)     the centre, with exchange.algorithm
//   x_i <- x_i - (pull / k) (x_i - c)         with the centre before
//
// The centre is the model that is tested, compared and saved: at a meeting the arenas hold it, and replicas continue
// from their own weights in the next step. Running statistics of batch norm are pulled like weights.
//
// Checkpoints hold the centre and, per replica, x_i - c; another number of replicas starts at the centre. A codec codes
// (pull / k) (x_i - c). An exchange sends the bytes of one all-reduce. Memory: two arenas.
#include <fmt/format.h>

#include <optional>

#include "base/check.hpp"
#include "base/spans.hpp"
#include "base/text.hpp"
#include "exchange/averaging/local_steps.hpp"
#include "exchange/entry.hpp"
#include "exchange/facets.hpp"
#include "exchange/living.hpp"

namespace echelon::inline exchange {
namespace {

class Elastic final : public LocalSteps, public Rescues {
 public:
  Elastic(const ExchangeConfig& config, const StrategyContext& context) : LocalSteps(context), keys_(config.elastic) {
    open_sums(config, context.first_channel);
    centre_ = pass().arena("centre of elastic averaging");
    deviation_ = pass().arena("deviation from the centre");
  }

  Progress progress() const override { return {.meets = Progress::Meets::by_period, .period = keys_.period}; }
  double divisor(const StepInfo& info) const override { return info.local_weight > 0 ? info.local_weight : 1; }

  void begin_step(const StepInfo& info) override {
    LocalSteps::begin_step(info);
    leave_centre();
  }

  StepOutcome end_step() override {
    const StepInfo& info = account().info();
    count_step();
    if (info.local_weight > 0) apply();
    if (info.meets) exchange();
    return take_outcome();
  }

  // Takes the centre of the first remaining rank: some ranks may have completed an exchange that others have not.
  bool rescue(Group& living, const std::vector<int>&) override {
    leave_centre();
    pass().copy(deviation_.data(), weights());
    pass().copy(weights(), centre_.data());
    context().arenas.clear_tables();
    broadcast_weights(living, context().arenas, {0, context().arenas.elems()}, 0);
    pass().add(deviation_.data(), weights(), -1);
    at_centre_ = true;
    drain();
    return true;
  }
  void visit_state(StateVisitor& visitor) override {
    LocalSteps::visit_state(visitor);
    pass().visit_by_replica(visitor, "strategy/deviation", deviation_.data(), position(), OtherK::reset);
    pass().visit_local_states(visitor, context().optimiser, position());
  }
  // The mean over the steps so far; before the first step, that of a long run.
  double formula_bytes_per_step() const override {
    return sums().formula_bytes() * (steps() > 0 ? static_cast<double>(exchanges_) / static_cast<double>(steps())
                                                 : 1 / static_cast<double>(keys_.period));
  }
  std::string describe() const override {
    return fmt::format("elastic averaging every {}, pull {}, {} over {}", counted(keys_.period, "step"), keys_.pull,
                       sums().describe(), counted(replicas(), "replica"));
  }

 private:
  // Replaces the centre, which the arenas hold after an exchange, by this replica's own weights.
  void leave_centre() {
    if (!at_centre_) return;
    at_centre_ = false;
    pass().copy_weights_to(centre_);
    pass().add(weights(), deviation_.data());
    context().arenas.touch();
  }

  void exchange() {
    ++exchanges_;
    {
      const SpanTimer timer(account().outcome().optimiser_s, SpanKind::optimiser);
      pass().put_share(keys_.pull / replicas(), weights(), centre_.data());
      pass().add_buffer(weights(), -1);
    }
    sums().sum(account().info().step, account());
    const SpanTimer timer(account().outcome().optimiser_s, SpanKind::optimiser);
    pass().add_to_buffer(centre_.data());  // the new centre
    pass().copy(deviation_.data(), weights());
    account().outcome().drift = pass().distance_from_buffer(deviation_.data());
    pass().take(weights());
    end_meeting();
    at_centre_ = true;
  }

  ElasticKeys keys_;
  Memory centre_, deviation_;  // of the arena's size
  bool at_centre_ = true;      // the arena's weights are the centre's, not this replica's
  std::int64_t exchanges_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_elastic(const ExchangeConfig& config, const StrategyContext& context) {
  return std::make_unique<Elastic>(config, context);
}

}  // namespace echelon::inline exchange
