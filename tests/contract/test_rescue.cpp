// Strategies that declare to go on without lost workers bring the weights that are left to all others, with the same
// bits; the others say that they cannot.
#include <catch2/catch.hpp>
#include <mutex>
#include <numeric>

#include "base/check.hpp"
#include "base/error.hpp"
#include "comm/local/local.hpp"
#include "comm/part_transport.hpp"
#include "config/traits/strategies.hpp"
#include "exchange/strategy.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/trainer.hpp"

namespace echelon {
namespace {

using Values = std::vector<double>;
constexpr int kRanks = 4;

struct Rescued {
  std::vector<Values> before, after;  // weights of the ranks that are left
  int rescued = 0;                    // of them
};

// Some steps on 4 ranks, of which these are then lost.
Rescued rescue(std::string_view name, const std::vector<int>& lost, std::int64_t steps) {
  Rescued all{.before = std::vector<Values>(kRanks), .after = std::vector<Values>(kRanks)};
  std::mutex mutex;
  std::vector<int> members;
  for (int rank = 0; rank < kRanks; ++rank)
    if (std::find(lost.begin(), lost.end(), rank) == lost.end()) members.push_back(rank);
  test::run_ranks(kRanks, [&](std::unique_ptr<Transport> transport) {
    const std::shared_ptr<Transport> whole = std::move(transport);
    std::vector<int> everybody(kRanks);
    std::iota(everybody.begin(), everybody.end(), 0);
    Engine engine(make_part_transport(whole, everybody));
    const int rank = engine.rank();
    test::Trainer trainer(test::small_lenet(), 2);
    Optimiser optimiser({}, trainer.arenas());
    ExchangeConfig config;
    config.strategy = name;
    config.bucket_mb = 1e-3;
    config.servers = strategy_traits(name).reads.contains("servers") ? 1 : 0;
    const auto strategy = make_strategy(config, {trainer.arenas(), optimiser, engine, 1});
    trainer.program().set_wait_parameters([&](ArenaRange range) { strategy->wait_parameters(range); });
    for (std::int64_t step = 0; step < steps;) {
      strategy->begin_step(
          {.step = step, .learning_rate = 0.1, .weight = 2 * kRanks, .local_weight = 2, .meets = false});
      trainer.gradients(test::hashed_batch(labelled({1, 8, 8}, 5), rank + kRanks * step, 2, 1), 2, true,
                        [&](ArenaRange range) { strategy->gradient_ready(range); });
      step = strategy->end_step().next_step;
    }
    Group(engine, 0).barrier();
    engine.break_off(std::make_exception_ptr(EnvironmentError("lost")));
    engine.settle();  // nothing writes to the arenas any more, which end before the engine
    if (std::find(lost.begin(), lost.end(), rank) != lost.end()) return;
    const auto weights = [&] {
      const auto* begin = static_cast<const double*>(trainer.arenas().weights_at(0));
      return Values(begin, begin + trainer.arenas().elems());
    };
    Engine left(make_part_transport(whole, members, 16));
    Group living(left, 0);
    const Values before = weights();
    const bool rescued = strategy->rescue(living, lost);
    living.barrier();
    const std::lock_guard lock(mutex);
    all.rescued += rescued;
    all.before[static_cast<std::size_t>(rank)] = before;
    all.after[static_cast<std::size_t>(rank)] = weights();
  });
  return all;
}

}  // namespace

TEST_CASE("strategies that declare to go on without lost workers are those that rescue their weights",
          "[contract][declared]") {
  for (const StrategyTraits& declared : kStrategies)
    for (const std::vector<int>& lost : {std::vector<int>{2}, {1, 3}, {1, 2, 3}}) {
      CAPTURE(declared.name, lost);
      const Rescued all = rescue(declared.name, lost, 3);
      CHECK(all.rescued == (declared.goes_on_without ? kRanks - static_cast<int>(lost.size()) : 0));
      if (!declared.goes_on_without) continue;
      Values mean(all.before[0].size());
      for (const Values& of_rank : all.before)
        for (std::size_t i = 0; i < of_rank.size(); ++i)
          mean[i] += of_rank[i] / (kRanks - static_cast<int>(lost.size()));
      for (const Values& of_rank : all.after)
        if (!of_rank.empty()) CHECK(of_rank == all.after[0]);
      if (declared.name == "gossip" || declared.name == "averaging")
        CHECK(test::relative_distance(all.after[0], mean) < 1e-12);
      if (declared.name == "asynchronous") CHECK(test::relative_distance(all.after[0], all.before[0]) > 1e-6);
    }
}

TEST_CASE("asynchronous workers that lose a server do not go on", "[contract]") {
  CHECK(rescue("asynchronous", {0}, 3).rescued == 0);
  CHECK(rescue("asynchronous", {0, 2}, 2).rescued == 0);
  CHECK(rescue("asynchronous", {2}, 0).rescued == kRanks - 1);  // before the first step
}

}  // namespace echelon
