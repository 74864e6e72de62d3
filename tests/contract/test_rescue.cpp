// SPDX-License-Identifier: Apache-2.0
// Strategies that declare to go on without lost workers bring the remaining weights to all ranks, with the same bits;
// the others declare that they cannot.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <functional>
#include <latch>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/state.hpp"
#include "comm/local/local.hpp"
#include "comm/part_transport.hpp"
#include "config/traits/strategies.hpp"
#include "exchange/facets.hpp"
#include "tests/support/discrete_device.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/trainer.hpp"

namespace echelon {
namespace {

using Flat = std::vector<double>;
constexpr int kRanks = 4;

struct Rescued {
  std::vector<Flat> before, after;  // weights of the remaining ranks
  std::vector<Flat> residuals;      // residuals of the remaining ranks, where a strategy keeps some
  int rescued = 0;                  // number of ranks that were rescued
};

// Collects the state that a strategy shows under names with this prefix.
struct Shown final : StateVisitor {
  explicit Shown(std::string_view beginning) : prefix(beginning) {}
  bool loading() const override { return false; }
  void tensor(const StateTensor& tensor) override {
    if (!std::string_view(tensor.name).starts_with(prefix)) return;
    const auto* begin = static_cast<const double*>(tensor.data);
    values.insert(values.end(), begin, begin + tensor.shape.elems());
  }
  void scalar(std::string_view, std::int64_t&, Absent) override {}
  void scalar(std::string_view, double&, Absent) override {}
  std::string_view prefix;
  Flat values;
};

// When the loss happens: after the last step, or once all that step sent has arrived; or inside the last step, which
// the lost ranks do not take, so that the others wait for them.
enum class Lost : std::uint8_t { after, settled, inside };

// Takes some steps on 4 ranks and then loses these ranks. `discrete`: on devices out of the host's reach.
Rescued rescue(std::string_view name, const std::vector<int>& lost, std::int64_t steps, Lost when = Lost::after,
               const std::function<void(ExchangeConfig&)>& set = {}, bool discrete = false) {
  Rescued all{
      .before = std::vector<Flat>(kRanks), .after = std::vector<Flat>(kRanks), .residuals = std::vector<Flat>(kRanks)};
  std::mutex mutex;
  std::vector<Engine*> engines;
  std::latch broken_off(1);  // all engines; none may end before
  std::vector<int> members;
  for (int rank = 0; rank < kRanks; ++rank)
    if (std::find(lost.begin(), lost.end(), rank) == lost.end()) members.push_back(rank);
  test::run_ranks(kRanks, [&](std::unique_ptr<Transport> transport) {
    const std::shared_ptr<Transport> whole = std::move(transport);
    std::vector<int> everybody(kRanks);
    std::iota(everybody.begin(), everybody.end(), 0);
    Engine engine(make_part_transport(whole, everybody));
    const int rank = engine.rank();
    test::Trainer trainer(test::small_cnn(), 2, {},
                          discrete ? test::make_discrete_device() : open_device("reference", {}));
    Optimiser optimiser({}, trainer.arenas());
    ExchangeConfig config;
    config.strategy = name;
    config.bucket_mb = 1e-3;
    config.servers = strategy_traits(name).reads.contains("servers") ? 1 : 0;
    if (set) set(config);
    const auto strategy = make_strategy(config, {.arenas = trainer.arenas(),
                                                 .optimiser = optimiser,
                                                 .engine = engine,
                                                 .first_channel = 1,
                                                 .may_lose_workers = true});
    trainer.program().set_wait_parameters([&](ArenaRange range) { strategy->wait_parameters(range); });
    const bool is_lost = std::find(lost.begin(), lost.end(), rank) != lost.end();
    const auto loss = std::make_exception_ptr(EnvironmentError("lost"));
    const auto train = [&](std::int64_t end) {
      for (std::int64_t step = 0; step < end;) {
        strategy->begin_step(
            {.step = step, .learning_rate = 0.1, .weight = 2 * kRanks, .local_weight = 2, .meets = false});
        trainer.gradients(test::hashed_batch(labelled({1, 8, 8}, 5), rank + kRanks * step, 2, 1), 2, true,
                          [&](ArenaRange range) { strategy->gradient_ready(range); });
        step = strategy->end_step().next_step;
      }
    };
    if (when != Lost::inside) {
      train(steps);
      if (when == Lost::settled) strategy->drain();
      Group(engine, 0).barrier();
      engine.break_off(loss);
    } else {
      {
        const std::lock_guard lock(mutex);
        engines.push_back(&engine);
      }
      Group(engine, 0).barrier();
      try {
        train(is_lost ? steps - 1 : steps);
        ECHELON_CHECK(is_lost, "rank {} waited for nobody", rank);
      } catch (const EnvironmentError&) {  // from the engine, which was broken off
      }
      if (rank == lost.front()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));  // so that the others are waiting
        for (Engine* other : engines) other->break_off(loss);
        broken_off.count_down();
      }
      broken_off.wait();
    }
    engine.settle();  // nothing writes to the arenas any more; they are destroyed before the engine
    if (is_lost) return;
    Engine left(make_part_transport(whole, members, 16));
    Group living(left, 0);
    const Flat before = trainer.read_weights();
    auto* rescues = facet_of<Rescues>(*strategy);
    const bool rescued = rescues && rescues->rescue(living, lost);
    living.barrier();
    const std::lock_guard lock(mutex);
    all.rescued += rescued;
    all.before[static_cast<std::size_t>(rank)] = before;
    all.after[static_cast<std::size_t>(rank)] = trainer.read_weights();
    Shown residual("strategy/residual");
    strategy->visit_state(residual);
    all.residuals[static_cast<std::size_t>(rank)] = residual.values;
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
      Flat mean(all.before[0].size());
      for (const Flat& of_rank : all.before)
        for (std::size_t i = 0; i < of_rank.size(); ++i)
          mean[i] += of_rank[i] / (kRanks - static_cast<int>(lost.size()));
      for (const Flat& of_rank : all.after)
        if (!of_rank.empty()) CHECK(of_rank == all.after[0]);
      if (declared.name == "gossip" || declared.name == "noloco" || declared.name == "averaging")
        CHECK(test::relative_distance(all.after[0], mean) < 1e-12);
      if (declared.name == "asynchronous") CHECK(test::relative_distance(all.after[0], all.before[0]) > 1e-6);
    }
}

TEST_CASE("weights that replicas have in common are those of the last step that is complete", "[contract]") {
  const auto same = [](std::string_view name, const std::vector<int>& lost, const auto& set) {
    CAPTURE(name, lost);
    const Rescued inside = rescue(name, lost, 3, Lost::inside, set);
    const Rescued complete = rescue(name, lost, 2, Lost::settled, set);
    CHECK(inside.rescued == kRanks - static_cast<int>(lost.size()));
    CHECK(inside.after == complete.after);
  };
  for (const std::vector<int>& lost : {std::vector<int>{2}, {0}, {0, 3}}) {
    same("backup", lost, [](ExchangeConfig& config) { config.backup.replicas = 0; });
    same("strom", lost, [](ExchangeConfig& config) { config.strom.tau = 1e-3; });
  }
}

TEST_CASE("a message of a round that is not complete goes back into its sender's residual", "[contract]") {
  const double tau = static_cast<float>(1e-3);
  const auto set = [](ExchangeConfig& config) { config.strom.tau = 1e-3; };
  const Rescued inside = rescue("strom", {1}, 3, Lost::inside, set);
  const Rescued complete = rescue("strom", {1}, 3, Lost::settled, set);
  for (const std::size_t rank : {0, 2, 3}) {
    CAPTURE(rank);
    const Flat &kept = inside.residuals[rank], &sent = complete.residuals[rank];
    REQUIRE(kept.size() == sent.size());
    int back = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const double message = std::abs(kept[i] - sent[i]);
      REQUIRE((message < 1e-15 || std::abs(message - tau) < 1e-15));
      back += message > 1e-15 ? 1 : 0;
    }
    CHECK(back > 20);
  }
}

TEST_CASE("asynchronous workers go on with the weights that a server has in device memory", "[contract]") {
  for (const std::int64_t soft : {1, 2}) {
    const auto set = [&](ExchangeConfig& config) {
      config.asynchronous.memory = ServedMemory::device, config.asynchronous.soft = soft;
    };
    const Rescued all = rescue("asynchronous", {1, 3}, 3, Lost::after, set, true);
    CHECK(all.rescued == 2);
    CHECK(all.after[0] == all.after[2]);
    const double distance = test::relative_distance(all.after[0], all.before[0]);
    CHECK(distance > 1e-6);
    CHECK(distance < 0.5);
  }
}

TEST_CASE("asynchronous workers that lose a server do not go on", "[contract]") {
  CHECK(rescue("asynchronous", {0}, 3).rescued == 0);
  CHECK(rescue("asynchronous", {0, 2}, 2).rescued == 0);
  CHECK(rescue("asynchronous", {2}, 0).rescued == kRanks - 1);  // lost before the first step
}

}  // namespace echelon
