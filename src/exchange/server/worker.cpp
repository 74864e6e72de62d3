// SPDX-License-Identifier: Apache-2.0
// A worker of a synchronous parameter server, with or without a server in it. It pushes each bucket as its gradients
// are finished, serves its own parts as soon as they are summed, and lets each layer's forward wait for its weights.
#include "base/check.hpp"
#include "exchange/server/strategy.hpp"

namespace echelon::inline exchange {
namespace {

class ServerWorker final : public ServerStrategy {
 public:
  using ServerStrategy::ServerStrategy;

  void begin_step(const StepInfo& info) override {
    for (Bucket& bucket : buckets()) bucket.gradient.reset();
    account().begin_step(info);
  }

  void wait_parameters(ArenaRange range) override {
    if (account().all_completed()) return;
    serve_what_is_in();
    for (std::size_t b = 0; b < buckets().size(); ++b)
      if (buckets()[b].range.begin < range.end && range.begin < buckets()[b].range.end) finish(b);
  }

  void gradient_ready(ArenaRange range) override {
    serve_what_is_in();  // only for layers whose backward is over: this range's layer may still read its weights
    for (std::size_t b = 0; b < buckets().size(); ++b)
      if (buckets()[b].gradient.add(range, account().info().step)) push(b);
  }

  StepOutcome end_step() override {
    serve_what_is_in();
    for (const Bucket& bucket : buckets())
      ECHELON_CHECK(bucket.gradient.complete(), "gradients missing at the end of step {}", account().info().step);
    serve_where_all_wait();
    if (alone()) finish_all();
    return take_outcome();
  }

 private:
  std::shared_ptr<const Event> own_gradient(ArenaRange range) override { return gradients().fetch(range); }
  void store_pulled(std::size_t b) override {
    const Bucket& bucket = buckets()[b];
    weights().store({bucket.range.begin, bucket.own.begin});
    weights().store({bucket.own.end, bucket.range.end});
  }
};

}  // namespace

std::unique_ptr<Strategy> make_server_worker(const ExchangeConfig& config, const StrategyContext& context) {
  return std::make_unique<ServerWorker>(config, context);
}

}  // namespace echelon::inline exchange
