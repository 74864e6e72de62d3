// SPDX-License-Identifier: Apache-2.0
// Compares k replicas with one, and tries every strategy, on the ranks of this launch: small models in double.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "base/checksum.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/group.hpp"
#include "config/traits/strategies.hpp"
#include "exchange/entry.hpp"
#include "verify/check.hpp"
#include "verify/replicas.hpp"

namespace echelon::verify {
namespace {

constexpr double kDouble = 1e-8;
constexpr int kControlChannel = 1;

ReplicaRun run_on(const VerifyContext& context, Graph graph) {
  ReplicaRun run{.graph = std::move(graph), .shares = {}};
  for (int rank = 0; rank < context.ranks; ++rank) run.shares.push_back(rank % 2 == 0 ? 2 : 4);
  run.steps = context.quick ? 6 : 20;
  return run;
}

// The weights must equal those of one replica that takes all samples, and all ranks must have the same bits.
std::string equals_one(VerifyContext& context, const ReplicaRun& run) {
  const ReplicaResult several = train_replica(context.transport(), run);
  const ReplicaResult one = train_replicas(on_one_replica(run, false));
  const double distance = tensor_distance(run.graph.parameters(), several.weights, one.weights);
  ECHELON_CHECK(distance <= kDouble, "weights of {} replicas differ by {:.2g} from those of one, more than {:.0e}",
                run.replicas(), distance, kDouble);
  Engine engine(context.transport());
  const std::string bits = hex64(several.checksums.at(0));
  for (const std::string& other : Group(engine, kControlChannel).gather(bits))
    ECHELON_CHECK(other == bits, "replicas end with different bits");
  return fmt::format("within {:.1e}", distance);
}

// All replicas train on one batch repeatedly, with the steps and messages of the strategy. The loss must fall on at
// least one of them, because `backup` may leave out the same replica each time.
std::string trains(VerifyContext& context, const StrategyCase& strategy) {
  needs(context.ranks > 1, "needs 2 ranks");
  ReplicaRun run = run_on(context, small_digits_cnn());
  run.sets = strategy.sets;
  run.one_batch = true;
  run.steps = 20;
  const ReplicaResult result = train_replica(context.transport(), run);
  Engine engine(context.transport());
  const double own = result.loss / static_cast<double>(run.shares[static_cast<std::size_t>(context.rank)]);
  const std::vector<double> losses = Group(engine, kControlChannel).gather(own);
  const double loss = *std::min_element(losses.begin(), losses.end());
  const double start = std::log(5.0);  // loss of guessing among five classes
  ECHELON_CHECK(std::all_of(losses.begin(), losses.end(), [](double each) { return std::isfinite(each); }),
                "a loss is inf or NaN");
  ECHELON_CHECK(
      loss < 0.9 * start,
      "the smallest loss of a replica after {} steps on one batch is {:.3g} per sample; guessing gives {:.3g}",
      run.steps, loss, start);
  return fmt::format("loss {:.2g}, {:.2g} at first", loss, start);
}

}  // namespace

std::vector<VerifyCheck> replica_checks() {
  std::vector<VerifyCheck> checks;
  const auto add = [&](const char* group, const std::string& name, const auto& body) {
    checks.push_back({.group = group, .name = name, .body = body, .limit_s = 120});
  };
  const std::vector<StrategyCase> strategies = strategy_cases();
  for (const StrategyCase& strategy : strategies)
    if (strategy.equals_one && strategy_traits(strategy.strategy).all_reduces())
      for (const std::string& name : allreduce_names())
        add("k replicas equal one", strategy.name + ", " + name, [strategy, name](VerifyContext& context) {
          needs(!algorithm_traits(name).in_memory || context.one_host(), "ranks are on several hosts");
          ReplicaRun run = run_on(context, context.quick ? small_digits_cnn() : small_cnn());
          run.sets = strategy.sets, run.algorithm = name;
          return equals_one(context, run);
        });
    else if (strategy.equals_one)
      add("k replicas equal one", strategy.name, [strategy](VerifyContext& context) {
        ReplicaRun run = run_on(context, small_digits_cnn());
        run.sets = strategy.sets;
        return equals_one(context, run);
      });
  for (const StrategyCase& strategy : strategies)
    if (strategy.name == strategy.strategy)  // further forms may need more steps than a check takes
      add("strategy trains", strategy.name, [strategy](VerifyContext& context) { return trains(context, strategy); });
  return checks;
}

}  // namespace echelon::verify
