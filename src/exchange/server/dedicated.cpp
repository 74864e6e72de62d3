// SPDX-License-Identifier: Apache-2.0
// A dedicated server receives all pushes of a step, updates its parts, and sends the pulls, which overlap the workers'
// next forward. It holds whole arenas but uses only its parts of them.
#include "exchange/server/strategy.hpp"

namespace echelon::inline exchange {
namespace {

class DedicatedServer final : public ServerStrategy {
 public:
  using ServerStrategy::ServerStrategy;

  void begin_step(const StepInfo& info) override {
    finish_all();
    account().begin_step(info);
    for (std::size_t b = 0; b < buckets().size(); ++b) push(b);
  }

  void wait_parameters(ArenaRange) override {}
  void gradient_ready(ArenaRange) override {}

  StepOutcome end_step() override {
    for (std::size_t b = 0; b < buckets().size(); ++b) {
      serve_what_is_in();
      if (buckets()[b].stage == Stage::pushed) serve(b);
    }
    return take_outcome();
  }

 private:
  std::shared_ptr<const Event> own_gradient(ArenaRange) override { return nullptr; }
  void store_pulled(std::size_t) override {}  // this rank reads no weights
};

}  // namespace

std::unique_ptr<Strategy> make_dedicated_server(const ExchangeConfig& config, const StrategyContext& context) {
  return std::make_unique<DedicatedServer>(config, context);
}

}  // namespace echelon::inline exchange
