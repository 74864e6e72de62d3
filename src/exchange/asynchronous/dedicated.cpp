// SPDX-License-Identifier: Apache-2.0
// A dedicated server of an asynchronous parameter server. The thread that drives the engine processes updates and
// answers them; the compute thread only attends meetings. The rank holds whole arenas, of which meetings update its own
// parts.
#include "exchange/asynchronous/strategy.hpp"

namespace echelon::inline exchange {
namespace {

class AsyncServer final : public AsyncStrategy {
 public:
  using AsyncStrategy::AsyncStrategy;

  void begin_step(const StepInfo& info) override {
    attach();
    leave_meeting();
    account().begin_step(info);
  }
  void wait_parameters(ArenaRange) override {}
  void gradient_ready(ArenaRange) override {}
  StepOutcome end_step() override { return account().take(); }

 private:
  void begin_meeting() override { attach(); }
  void end_meeting() override {
    for (std::size_t b = 0; b < buckets().size(); ++b) take_over_served(b);
  }
};

}  // namespace

std::unique_ptr<Strategy> make_async_server(const ExchangeConfig& config, const StrategyContext& context,
                                            std::string_view name) {
  return std::make_unique<AsyncServer>(config, context, name);
}

}  // namespace echelon::inline exchange
