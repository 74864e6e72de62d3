// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "base/check.hpp"
#include "base/error.hpp"
#include "comm/group.hpp"
#include "comm/local/local.hpp"
#include "config/check_combinations.hpp"
#include "config/choices.hpp"
#include "config/parse.hpp"
#include "exchange/buckets.hpp"
#include "exchange/entry.hpp"
#include "exchange/step_account.hpp"
#include "exchange/strategy.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/trainer.hpp"

using namespace echelon;
using Catch::Matchers::Contains;

namespace {

ParameterSet sizes(const std::vector<std::int64_t>& elems) {
  ParameterSet set;
  for (std::size_t i = 0; i < elems.size(); ++i) set.add("p" + std::to_string(i), Shape{elems[i]}, {});
  return set;
}

struct OneRank {
  explicit OneRank(const ExchangeConfig& config) : optimiser({}, trainer.arenas()) {
    strategy = make_strategy(config, {trainer.arenas(), optimiser, engine, 0});
  }
  std::int64_t elems() { return trainer.arenas().elems(); }

  test::Trainer trainer{test::small_cnn(), 2};
  Optimiser optimiser;
  Engine engine{std::move(make_local_world(1).front())};
  std::unique_ptr<Strategy> strategy;
};

}  // namespace

TEST_CASE("the forms of strategies that tests run are valid and have names of their own", "[exchange]") {
  std::set<std::string> names;
  std::set<std::string_view> strategies;
  for (const StrategyCase& form : strategy_cases()) {
    CAPTURE(form.name);
    CHECK(names.insert(form.name).second);
    strategies.insert(form.strategy);
    CHECK_FALSE(form.family.empty());
    const Config config = parse_config("[model]\nzoo = \"lenet\"\n[data]\ntrain = \"x\"\n", "a.toml", form.sets);
    CHECK_NOTHROW(check_combinations(config));
    CHECK(config.exchange.strategy == form.strategy);
    // Replicas at a pace of their own, and those that skip steps, end with weights that depend on timing.
    const bool skips = strategy_traits(form.strategy).skips_steps && config.exchange.backup.of(3) > 0;
    CHECK(form.by_timing == (any_choice_is(config, Property::own_pace) || skips));
    CHECK_FALSE((form.by_timing && form.equals_one));
  }
  CHECK(strategies.size() == std::size(kStrategies));
}

TEST_CASE("buckets run from the arena's end over whole parameters", "[exchange]") {
  const ParameterSet set = sizes({10, 20, 5, 40, 3});  // they begin at 0 10 30 35 75
  CHECK(make_buckets(set, 4, 4 * 8) == std::vector<ArenaRange>{{35, 78}, {10, 35}, {0, 10}});
  CHECK(make_buckets(set, 4, 1e9) == std::vector<ArenaRange>{{0, 78}});
  CHECK(make_buckets(set, 4, 0) == std::vector<ArenaRange>{{75, 78}, {35, 75}, {30, 35}, {10, 30}, {0, 10}});
  CHECK(make_buckets(sizes({}), 4, 4).empty());
  ParameterSet tables;
  for (Parameter parameter : set.all()) {
    parameter.sparse = parameter.elems() == 10 || parameter.elems() == 5;
    tables.add(parameter);
  }
  CHECK(make_buckets(tables, 4, 1e9) == std::vector<ArenaRange>{{0, 78}});
  CHECK(make_buckets(tables, 4, 1e9, true) == std::vector<ArenaRange>{{35, 78}, {10, 30}});
  CHECK(make_buckets(tables, 4, 4 * 8, true) == std::vector<ArenaRange>{{35, 78}, {10, 30}});
}

// A rank of a split model: it has slices of `cut` elements each, a bias that it alone has, and two tensors that all
// ranks have.
ParameterSet shard(std::int64_t cut, bool alone) {
  ParameterSet set;
  const auto add = [&](const char* name, std::int64_t elems, std::int64_t all) {
    Parameter p;
    p.name = name, p.shape = Shape{elems}, p.global_shape = Shape{all}, p.offset = Shape{0};
    p.alone = elems == all && std::string(name) == "bias";
    set.add(p);
  };
  for (const char* name : {"w1", "w2", "w3"}) add(name, cut, 100);
  if (alone) add("bias", 10, 10);
  add("shared1", 20, 20);
  add("shared2", 20, 20);
  add("w4", cut, 100);
  return set;
}

TEST_CASE("what several ranks hold whole is in the same buckets on all of them", "[exchange]") {
  const ParameterSet first = shard(40, true), second = shard(30, false);
  for (const double bytes : {0.0, 400.0, 1e9}) {
    const auto of = [&](const ParameterSet& set) {
      std::vector<std::pair<std::int64_t, std::uint64_t>> shared;
      for (const ArenaRange& bucket : make_buckets(set, 4, bytes)) {
        const std::int64_t begin = set[set.find("shared1")].begin;
        if (bucket.end <= begin || bucket.begin >= begin + 40) continue;
        CHECK((bucket.begin >= begin && bucket.end <= begin + 40));
        shared.push_back({bucket.elems(), bucket_key(set, bucket)});
      }
      return shared;
    };
    CHECK(of(first) == of(second));
  }
}

TEST_CASE("gradients missing, or announced twice, are defects", "[exchange]") {
  OneRank rank({});
  rank.strategy->begin_step({});
  CHECK_THROWS_WITH(rank.strategy->end_step(), Contains("gradients missing"));
  rank.strategy->begin_step({});
  rank.strategy->gradient_ready({0, rank.elems()});
  CHECK_THROWS_WITH(rank.strategy->gradient_ready({0, 1}), Contains("announced twice"));
}

TEST_CASE("one replica exchanges nothing and says so", "[exchange]") {
  OneRank rank({});
  CHECK_THAT(rank.strategy->describe(), Contains("one replica"));
  CHECK(rank.strategy->formula_bytes_per_step() == 0);
  const double before = rank.trainer.read_weights()[0];
  rank.trainer.gradients(test::hashed_batch(labelled({1, 8, 8}, 5), 0, 2, 1), 2, true);
  rank.strategy->begin_step({.step = 4, .learning_rate = 0.1});
  rank.strategy->gradient_ready({0, rank.elems()});
  const StepOutcome outcome = rank.strategy->end_step();
  CHECK(outcome.next_step == 5);
  CHECK(outcome.contributed);
  CHECK(outcome.exchange_wait_s == 0);
  CHECK(outcome.exchange_busy_s == 0);
  CHECK(outcome.optimiser_s > 0);
  CHECK(rank.trainer.read_weights()[0] == Approx(before - 0.1 * rank.trainer.read_gradients()[0]));
  CHECK(rank.engine.counters().messages_sent == 0);
}

TEST_CASE("what a drain takes is in no outcome, what it sends is", "[exchange]") {
  OneRank rank({});
  StepAccount account(rank.optimiser);
  account.begin_step({.step = 2});
  account.outcome().exchange_wait_s += 1;
  account.outcome().optimiser_s += 2;
  {
    const StepAccount::ExcludedTime apart(account);
    account.outcome().exchange_wait_s += 10;
    account.outcome().optimiser_s += 20;
    account.note_sent({.messages_sent = 1, .bytes_sent = 7});
  }
  const StepOutcome outcome = account.take();
  CHECK(outcome.exchange_wait_s == 1);
  CHECK(outcome.optimiser_s == 2);
  CHECK(outcome.wire.bytes_sent == 7);
  CHECK(account.take().wire.bytes_sent == 0);
  CHECK(account.wire().bytes_sent == 7);
}

TEST_CASE("unknown names are refused with the nearest known one", "[exchange]") {
  ExchangeConfig config;
  config.strategy = "synchronus";
  CHECK_THROWS_WITH(OneRank(config), Contains("did you mean 'synchronous'"));
  config.strategy = "synchronous";
  config.algorithm = "rng";
  CHECK_THROWS_WITH(OneRank(config), Contains("did you mean 'ring'"));
}

TEST_CASE("rank 0's weights reach every rank, statistics too", "[exchange]") {
  std::vector<std::vector<double>> weights(3);
  test::run_ranks(3, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    const auto rank = static_cast<std::size_t>(engine.rank());
    test::Trainer trainer(test::small_batch_norm_net(), 2, {.seed = 10 + rank});
    trainer.write_weight(trainer.graph().parameters().elems() - 1, static_cast<double>(rank));
    broadcast_weights(trainer.arenas(), engine, 0);
    weights[rank] = trainer.read_weights();
  });
  CHECK(weights[1] == weights[0]);
  CHECK(weights[2] == weights[0]);
  CHECK(weights[0].back() == 0);
}

TEST_CASE("however the exchange overlaps, the weights have the same bits", "[exchange]") {
  for (const char* rule : {"sgd", "adam"}) {
    test::ReplicaRun run{.graph = test::small_batch_norm_net(), .shares = {4, 3, 1}, .steps = 6, .bucket_kb = 0.5};
    run.rule = rule;
    run.overlap = Overlap::none;
    const test::ReplicaResult after = test::train_replicas(run);
    run.overlap = Overlap::buckets;
    CHECK(test::train_replicas(run).weights == after.weights);
    run.overlap = Overlap::layers;
    const test::ReplicaResult layers = test::train_replicas(run);
    CHECK(layers.weights == after.weights);
    CHECK(layers.sent_bytes == after.sent_bytes);
  }
}

TEST_CASE("gathered for a checkpoint, every worker has the optimiser's states of all servers", "[exchange]") {
  const auto states_of = [](const char* name) {
    std::vector<std::vector<double>> states(3);
    test::run_ranks(3, [&](std::unique_ptr<Transport> transport) {
      Engine engine(std::move(transport));
      const auto rank = static_cast<std::size_t>(engine.rank());
      test::Trainer trainer(test::small_cnn(), 2);
      Optimiser optimiser({}, trainer.arenas());  // sgd with momentum
      ExchangeConfig config;
      config.strategy = name;
      config.bucket_mb = 1e-3;
      const auto strategy = make_strategy(config, {trainer.arenas(), optimiser, engine, 1});
      trainer.program().set_wait_parameters([&](ArenaRange range) { strategy->wait_parameters(range); });
      for (std::int64_t step = 0; step < 3; ++step) {
        strategy->begin_step({.step = step, .learning_rate = 0.1});
        trainer.gradients(test::hashed_batch(labelled({1, 8, 8}, 5), static_cast<std::int64_t>(rank), 2, 1), 6, true,
                          [&](ArenaRange range) { strategy->gradient_ready(range); });
        strategy->end_step();
      }
      strategy->drain();
      strategy->gather_state();
      const auto* begin = static_cast<const double*>(optimiser.state(0));
      states[rank].assign(begin, begin + trainer.arenas().elems());
      Group(engine, 0).barrier();
    });
    return states;
  };
  const auto served = states_of("server"), summed = states_of("synchronous");
  double worst = 0;
  for (std::size_t i = 0; i < summed[0].size(); ++i) worst = std::max(worst, std::fabs(served[0][i] - summed[0][i]));
  CHECK(worst < 1e-12);
  CHECK(served[1] == served[0]);
  CHECK(served[2] == served[0]);
}

TEST_CASE("a step that does not wait for its weights is a defect", "[exchange]") {
  const auto body = [](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    test::Trainer trainer(test::small_cnn(), 2);
    Optimiser optimiser({}, trainer.arenas());
    const auto strategy = make_strategy({}, {trainer.arenas(), optimiser, engine, 0});
    const auto step = [&](std::int64_t number) {
      strategy->begin_step({.step = number, .learning_rate = 0.1});
      strategy->gradient_ready({0, trainer.arenas().elems()});
      strategy->end_step();
    };
    step(0);
    std::string refused;
    try {
      step(1);
    } catch (const std::exception& error) {
      refused = error.what();
    }
    strategy->drain();  // the other rank may still send into the arenas
    ECHELON_CHECK(refused.find("were not waited for in step 1") != std::string::npos, "refused: '{}'", refused);
  };
  CHECK_NOTHROW(test::run_ranks(2, body));
}

TEST_CASE("with overlap by layers, weights change when they are waited for", "[exchange]") {
  CHECK_NOTHROW(test::run_ranks(2, [](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    test::Trainer trainer(test::small_cnn(), 2);
    Optimiser optimiser({}, trainer.arenas());
    ExchangeConfig config;
    config.bucket_mb = 1e-4;
    const auto strategy = make_strategy(config, {trainer.arenas(), optimiser, engine, 0});
    trainer.gradients(test::hashed_batch(labelled({1, 8, 8}, 5), 0, 2, 1), 2, true);
    const std::vector<double> before = trainer.read_weights();
    strategy->begin_step({.step = 0, .learning_rate = 0.1});
    strategy->gradient_ready({0, trainer.arenas().elems()});
    const StepOutcome first = strategy->end_step();
    ECHELON_CHECK(trainer.read_weights() == before, "end_step waits for nobody");
    ECHELON_CHECK_EQ(first.exchange_wait_s, 0.0);
    const Parameter& p = trainer.graph().parameters().all().front();
    strategy->begin_step({.step = 1, .learning_rate = 0.0});  // the next step's rate: the waiting ones must not take it
    strategy->wait_parameters({p.begin, p.end()});
    const std::vector<double> between = trainer.read_weights();
    ECHELON_CHECK(between.front() != before.front() && between.back() == before.back(), "one layer alone");
    strategy->drain();
    ECHELON_CHECK(trainer.read_weights().back() != before.back(), "all of them");
    ECHELON_CHECK(strategy->wire().bytes_sent > 0, "sent");
    Group(engine, 1000).barrier();
  }));
}
