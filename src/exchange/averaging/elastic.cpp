// Elastic averaging (synchronous EASGD: Zhang, Choromanska, LeCun, NIPS 2015, eq. 5 and 6): every replica takes
// optimiser steps of its own; every H steps, and at the end of an epoch,
//
//   c   <- c + (pull / k) sum_i (x_i - c)     the centre, by exchange.algorithm
//   x_i <- x_i - (pull / k) (x_i - c)         with the centre before
//
// The centre is the model that is tested, compared and saved: at a meeting the weights in the arenas are its weights,
// and replicas go on from their own in the next step. Running statistics of batch norm are pulled like weights.
//
// Checkpoints hold the centre and, by replica, x_i - c; another number of replicas begins at the centre. Codecs carry
// (pull / k) (x_i - c). Bytes of an exchange: those of one all-reduce. Memory: two arenas.
#include <fmt/format.h>

#include <optional>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"
#include "exchange/allreduce/bucket_sums.hpp"
#include "exchange/averaging/arena_pass.hpp"
#include "exchange/buckets.hpp"
#include "exchange/list.hpp"
#include "exchange/step_account.hpp"

namespace echelon::inline exchange {
namespace {

class Elastic final : public Strategy {
 public:
  Elastic(const ExchangeConfig& config, const StrategyContext& context)
      : keys_(config.elastic), context_(context), account_(context.optimiser), pass_(context.arenas) {
    sums_.emplace(
        config, context,
        make_buckets(context.arenas.parameters(), size_of(context.arenas.dtype()), config.bucket_mb * 1024 * 1024),
        context.first_channel);
    gradient_ = ReadyCount({0, context.arenas.elems()});
    centre_ = pass_.arena("centre of elastic averaging");
    deviation_ = pass_.arena("deviation from the centre");
  }

  std::string_view name() const override { return "elastic"; }
  Progress progress() const override { return {.meets = Progress::Meets::by_period, .period = keys_.period}; }
  double divisor(const StepInfo& info) const override { return info.local_weight > 0 ? info.local_weight : 1; }

  void begin_step(const StepInfo& info) override {
    gradient_.reset();
    account_.begin_step(info);
    if (!at_centre_) return;
    at_centre_ = false;
    void* weights = context_.arenas.weights_at(0);
    pass_.copy_weights_to(centre_);
    pass_.add(weights, deviation_.data());
    context_.arenas.touch();
  }
  void wait_parameters(ArenaRange) override {}
  void gradient_ready(ArenaRange range) override { gradient_.add(range, account_.info().step); }

  StepOutcome end_step() override {
    const StepInfo& info = account_.info();
    ECHELON_CHECK(gradient_.complete(), "gradients missing at the end of step {}", info.step);
    ++steps_;
    if (info.local_weight > 0) apply_all(context_.optimiser, context_.arenas, account_.outcome());
    if (info.meets) exchange();
    StepOutcome outcome = account_.take();
    outcome.codec = sums_->record();
    return outcome;
  }

  void drain() override { context_.arenas.device().synchronize(); }
  void gather_state() override { sums_->gather_state(); }
  void visit_state(StateVisitor& visitor) override {
    sums_->visit_state(visitor);
    const ReplicaPosition place{context_.engine.rank(), replicas()};
    pass_.visit_by_replica(visitor, "strategy/deviation", deviation_.data(), place, OtherK::reset);
    pass_.visit_local_states(visitor, context_.optimiser, place);
  }
  WireCounters wire() const override { return account_.wire(); }
  // Of the steps done so far; before the first, of a long run.
  double formula_bytes_per_step() const override {
    return sums_->formula_bytes() * (steps_ > 0 ? static_cast<double>(exchanges_) / static_cast<double>(steps_)
                                                : 1 / static_cast<double>(keys_.period));
  }
  std::string describe() const override {
    return fmt::format("elastic averaging every {}, pull {}, {} over {}", counted(keys_.period, "step"), keys_.pull,
                       sums_->describe(), counted(replicas(), "replica"));
  }

 private:
  int replicas() const { return context_.engine.size(); }

  void exchange() {
    ++exchanges_;
    void* weights = context_.arenas.weights_at(0);
    {
      const ScopedTimer timer(account_.outcome().optimiser_s);
      pass_.put_share(keys_.pull / replicas(), weights, centre_.data());
      pass_.add_buffer(weights, -1);
    }
    for (std::size_t b = 0; b < sums_->size(); ++b) sums_->submit(b, account_.info().step);
    for (std::size_t b = 0; b < sums_->size(); ++b) sums_->settle(b, account_);
    const ScopedTimer timer(account_.outcome().optimiser_s);
    pass_.add_to_buffer(centre_.data());  // the new centre
    pass_.copy(deviation_.data(), weights);
    account_.outcome().drift = pass_.distance_from_buffer(deviation_.data());
    pass_.take(weights);
    context_.arenas.clear_tables();
    context_.arenas.touch();
    at_centre_ = true;
  }

  ElasticKeys keys_;
  StrategyContext context_;
  StepAccount account_;
  ArenaPass pass_;
  std::optional<BucketSums> sums_;
  ReadyCount gradient_;
  Memory centre_, deviation_;  // of the arena
  bool at_centre_ = true;      // the weights in the arena are the centre's; else this replica's
  std::int64_t steps_ = 0, exchanges_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_elastic(const ExchangeConfig& config, const StrategyContext& context) {
  return std::make_unique<Elastic>(config, context);
}

}  // namespace echelon::inline exchange
