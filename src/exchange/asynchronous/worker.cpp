// SPDX-License-Identifier: Apache-2.0
// A worker of an asynchronous parameter server, with or without a server in it. It takes the optimiser's step on each
// bucket as its gradients are finished, pushes the change, and lets each layer's forward wait for the servers' weights.
// If the servers have the optimiser's states, it pushes the gradients and steps only on running statistics.
#include <cmath>

#include "base/check.hpp"
#include "base/spans.hpp"
#include "exchange/asynchronous/strategy.hpp"

namespace echelon::inline exchange {
namespace {

class AsyncWorker final : public AsyncStrategy {
 public:
  AsyncWorker(const ExchangeConfig& config, const StrategyContext& context, std::string_view name)
      : AsyncStrategy(config, context, name), runs_(context.arenas.parameters()) {}

  void begin_step(const StepInfo& info) override {
    attach();
    leave_meeting();
    in_step_ = true;
    for (Bucket& bucket : buckets()) bucket.gradient.reset();
    account().begin_step(info);
  }

  // Between steps nothing changes these weights until the next step, and the caller counts the time.
  void wait_parameters(ArenaRange range) override {
    if (alone()) return;
    if (!in_step_) return finish_all();
    for (std::size_t b = 0; b < buckets().size(); ++b)
      if (buckets()[b].range.begin < range.end && range.begin < buckets()[b].range.end) finish(b);
  }

  void gradient_ready(ArenaRange range) override {
    // Only for layers whose backward is over: this range's layer may still read its weights.
    if (!context().optimiser.waits()) push_ready();
    for (Bucket& bucket : buckets())
      if (bucket.gradient.add(range, info().step)) bucket.ready = true;
  }

  StepOutcome end_step() override {
    for (const Bucket& bucket : buckets())
      ECHELON_CHECK(bucket.gradient.complete(), "gradients missing at the end of step {}", info().step);
    count_step();
    for (std::size_t b = 0; b < buckets().size() && context().optimiser.waits(); ++b) release_residual(b);
    if (context().optimiser.waits() && trains())
      apply_whole(context().optimiser, context().arenas, account().outcome());
    push_ready();
    in_step_ = false;
    StepOutcome outcome = account().take();
    if (codec()) outcome.codec = codec()->record();
    return outcome;
  }

 private:
  // A single worker sends nothing: it applies the loaded residuals, of gradients or changes of weights, here.
  void release_residual(std::size_t b) {
    if (!codec() || !alone()) return;
    const bool gradients = keys().states == AsyncStates::server;
    const std::int64_t begin = buckets()[b].range.begin;
    Arenas& arenas = context().arenas;
    codec()->release(b, arenas.device(), gradients ? arenas.gradients_at(begin) : arenas.weights_at(begin));
    arenas.touch();
  }

  bool trains() const { return info().local_weight > 0; }

  double share() const {
    const double share = info().weight > 0 ? info().local_weight / info().weight : 0;
    return keys().rate == AsyncRate::full ? 1 : keys().rate == AsyncRate::sqrt ? std::sqrt(share) : share;
  }

  // Applies and pushes the buckets whose gradients are complete; if the optimiser waits, they are already applied.
  void push_ready() {
    for (std::size_t b = 0; b < buckets().size(); ++b) {
      Bucket& bucket = buckets()[b];
      if (!bucket.ready) continue;
      bucket.ready = false;
      const SpanTimer timer(account().outcome().optimiser_s, SpanKind::optimiser);
      if (!context().optimiser.waits()) release_residual(b);
      if (trains() && !context().optimiser.waits()) apply(bucket.range);
      if (alone()) continue;
      set_update(b);
      push(b);
    }
  }

  void apply(ArenaRange range) {
    if (!at_servers()) return context().optimiser.apply(range);
    runs_.each(range, [&](ArenaRange run, bool statistic) {
      if (statistic) context().optimiser.apply(run);
    });
  }

  void set_update(std::size_t b) {
    const Arenas& arenas = context().arenas;
    AsyncBuffers::Update update{
        .share = share(), .rate = trains() ? share() * info().learning_rate : 0, .step = info().step};
    with_host(arenas.weights_at(0), buckets()[b].range, [&](const void* weights) {
      update.weights = weights;
      if (!at_servers()) return memory().set_update(b, update);
      with_host(arenas.gradients_at(0), buckets()[b].range, [&](const void* gradients) {
        update.gradients = gradients;
        memory().set_update(b, update);
      });
    });
  }

  void finish(std::size_t b) {
    Bucket& bucket = buckets()[b];
    if (!bucket.ticket.valid()) return;
    {
      const SpanTimer timer(account().outcome().exchange_wait_s, SpanKind::exchange_wait);
      bucket.ticket.wait();
    }
    account().note(bucket.ticket, static_cast<std::int64_t>(b));
    bucket.ticket = {};
    if (codec()) codec()->settled(b);
    take_over(bucket.range, memory().pulled(b));
  }

  void finish_all() {
    const StepAccount::ExcludedTime apart(account());
    for (std::size_t b = 0; b < buckets().size(); ++b) finish(b);
  }

  void begin_meeting() override { finish_all(); }
  void end_meeting() override {
    for (std::size_t b = 0; b < buckets().size(); ++b) take_over(buckets()[b].range, memory().pulled(b));
  }

  KindRuns runs_;
  bool in_step_ = false;
};

}  // namespace

std::unique_ptr<Strategy> make_async_worker(const ExchangeConfig& config, const StrategyContext& context,
                                            std::string_view name) {
  return std::make_unique<AsyncWorker>(config, context, name);
}

}  // namespace echelon::inline exchange
