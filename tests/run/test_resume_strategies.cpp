// SPDX-License-Identifier: Apache-2.0
// Any strategy can resume a checkpoint of any other one: position and weights are taken over, and state that the other
// strategy cannot use is named.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>

#include "base/error.hpp"
#include "config/traits/strategies.hpp"
#include "tests/run/compare.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::Sets;

// Returns settings that make a strategy keep states of its own.
Sets sets_of(const std::string& strategy) {
  static const std::map<std::string, Sets> more = {
      {"synchronous", {"exchange.codec=topk"}},
      {"server", {"exchange.codec=topk"}},
      {"averaging", {"exchange.averaging.states=local", "exchange.averaging.outer_momentum=0.5"}},
      {"stale_synchronous", {"exchange.asynchronous.states=server"}},
  };
  Sets sets = {"exchange.strategy=" + strategy, "exchange.bucket_mb=0.01"};
  const auto found = more.find(strategy);
  return found == more.end() ? sets : test::with(sets, found->second);
}

// Returns the words for state that is dropped, beside the positions of single replicas.
std::string dropped_of(const std::string& strategy) {
  static const std::map<std::string, std::string> words = {
      {"synchronous", "thresholds, residuals"},
      {"server", "thresholds, exact weights of the servers, residuals"},
      {"averaging", "optimiser states of single replicas, outer momentum"},
      {"elastic", "distances of replicas, optimiser states of single replicas"},
      {"gossip", "distances of replicas, optimiser states of single replicas"},
      {"noloco", "distances of replicas, optimiser states of single replicas, outer momentum, slow weights"},
      {"asynchronous", "optimiser states of single replicas"},
      {"stale_synchronous", "server updates"},
      {"strom", "optimiser states of single replicas, residuals, thresholds"},
  };
  const auto found = words.find(strategy);
  return found == words.end() ? "" : found->second;
}

test::Outcome on_threads(const test::Trial& trial, int ranks, const Sets& sets) {
  std::vector<std::string> words = {"train", "trial.toml", "--local-ranks", std::to_string(ranks)};
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  const test::Outcome outcome = trial.echelon(words);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == kExitOk);
  return outcome;
}

}  // namespace

TEST_CASE("a checkpoint of each strategy is taken up under each other one, which names what it drops",
          "[run][resume_from][strategies][slow]") {
  const test::Trial trial;
  const Sets both = {"evaluate.every_epochs=0"};
  for (const StrategyTraits& from : kStrategies) {
    const std::string source(from.name);
    on_threads(trial, 2, test::with(sets_of(source), test::with(both, {"name=" + source, "train.steps=8"})));
    const std::vector<double> weights = test::last_values(trial, "weights/", source);
    for (const StrategyTraits& to : kStrategies) {
      const std::string target(to.name), name = source + "-" + target;
      CAPTURE(source, target);
      // At a learning rate of 0 the weights stay as they were resumed.
      const test::Outcome taken =
          on_threads(trial, 2,
                     test::with(sets_of(target), test::with(both, {"name=" + name, "run.resume_from=results/" + source,
                                                                   "train.steps=10", "optimizer.learning_rate=0"})));
      INFO(taken.out << taken.err);
      CHECK_THAT(taken.out, Contains("resuming  from step 8 of another run: results/" + source));
      const std::string positions = from.own_pace && !to.own_pace ? "positions of single replicas" : "";
      std::string dropped = dropped_of(source);
      dropped += (dropped.empty() || positions.empty() ? "" : ", ") + positions;
      const std::string line =
          fmt::format("; resumed from `{}`; {} dropped\n", source, dropped.empty() ? "nothing" : dropped);
      const auto rows = trial.metrics(name);
      REQUIRE(!rows.empty());
      CHECK((rows.front()["step"] == 9 || to.skips_steps));  // a late replica leaves steps out
      if (source == target) {                                // with distances and residuals, which move the weights
        CHECK_THAT(taken.out, !Contains("resumed from") && !Contains("left out"));
        continue;
      }
      CHECK_THAT(taken.out, Contains(line));
      const std::vector<double> after = test::last_values(trial, "weights/", name);
      REQUIRE(after.size() == weights.size());
      double distance = 0;
      for (std::size_t i = 0; i < weights.size(); ++i) distance = std::max(distance, std::abs(after[i] - weights[i]));
      CHECK(distance < 1e-6);
    }
  }
}

}  // namespace echelon
