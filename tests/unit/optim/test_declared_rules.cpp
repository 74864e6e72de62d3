// SPDX-License-Identifier: Apache-2.0
// The optimiser must do what rules and schedules declare (config/traits/rules.hpp).
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "config/keys.hpp"
#include "config/traits/rules.hpp"
#include "optim/optimiser.hpp"
#include "optim/schedule.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

constexpr std::size_t kElems = 19;

// Returns the weights of one parameter after three updates; `nudge` is added to its first gradient.
std::vector<double> trained(const OptimiserConfig& config, double nudge = 0) {
  const auto device = open_device("reference", {});
  ParameterSet parameters;
  parameters.add("a", Shape{static_cast<std::int64_t>(kElems)}, {});
  Arenas arenas(*device, parameters, DType::f64);
  Optimiser optimiser(config, arenas);
  std::vector<double> weights = test::random_values(kElems, "weights");
  device->to_device(arenas.weights_at(0), weights.data(), kElems * sizeof(double));
  for (int step = 0; step < 3; ++step) {
    std::vector<double> g = test::random_values(kElems, "gradient " + std::to_string(step));
    g[0] += nudge;
    device->to_device(arenas.gradients_at(0), g.data(), kElems * sizeof(double));
    optimiser.begin_step(step, config.learning_rate);
    optimiser.apply({0, static_cast<std::int64_t>(kElems)});
  }
  device->to_host(weights.data(), arenas.weights_at(0), kElems * sizeof(double));
  return weights;
}

template <class Table>
std::set<std::string> keys_of_some(const Table& table) {
  std::set<std::string> keys;
  for (const auto& entry : table) keys.insert(entry.reads.begin(), entry.reads.end());
  return keys;
}

// Returns a config with another value of this key of [optimizer].
OptimiserConfig with_other(const OptimiserConfig& config, const std::string& name) {
  Config whole;
  whole.optimiser = config;
  const auto& keys = config_keys();
  const auto key =
      std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return k.path() == "optimizer." + name; });
  REQUIRE(key != keys.end());
  KeyValue value = key->get(whole);
  if (auto* flag = std::get_if<bool>(&value)) *flag = !*flag;
  if (auto* number = std::get_if<double>(&value)) *number = 0.5 * *number + 0.01;
  if (auto* whole_number = std::get_if<std::int64_t>(&value)) *whole_number += 32;
  if (auto* list = std::get_if<std::vector<double>>(&value)) list->push_back(6);
  if (name == "points") value = std::vector<double>{0, 4};
  if (name == "factors") value = std::vector<double>{1, 0.25};
  if (auto* word = std::get_if<std::string>(&value)) *word = key->limits.words.back();
  key->set(whole, value);
  return whole.optimiser;
}

std::vector<double> rates(const OptimiserConfig& config, std::int64_t total = 100) {
  std::vector<double> all;
  for (std::int64_t step = 0; step < 100; ++step) all.push_back(learning_rate_at(config, step, 10, total));
  return all;
}

}  // namespace

TEST_CASE("rules read the keys that they declare", "[optim][declared]") {
  for (const RuleTraits& rule : kRules)
    for (const std::string& name : keys_of_some(kRules)) {
      CAPTURE(rule.name, name);
      OptimiserConfig config;
      config.rule = rule.name;
      config.weight_decay = 0.1;
      CHECK((trained(with_other(config, name)) != trained(config)) == rule.reads.contains(name));
    }
}

TEST_CASE("rules with a trust ratio, and no others, look at a whole parameter", "[optim][declared]") {
  for (const RuleTraits& rule : kRules) {
    CAPTURE(rule.name);
    OptimiserConfig config;
    config.rule = rule.name;
    const std::vector<double> plain = trained(config), nudged = trained(config, 3);
    CHECK(plain[0] != nudged[0]);
    CHECK((plain[7] != nudged[7]) == (rule.trust != TrustRatio::none));
  }
}

TEST_CASE("schedules and ways of scaling read the keys that they declare", "[optim][declared]") {
  OptimiserConfig config;
  config.decay_at_epochs = {2};
  config.final_factor = 0.2;
  config.power = 2;
  config.base_batch = 32;
  config.points = {0, 3};
  config.factors = {1, 0.5};
  for (const ScheduleTraits& schedule : kSchedules) {
    config.schedule = schedule.name;
    CAPTURE(schedule.name);
    for (const std::string& name : keys_of_some(kSchedules)) {
      CAPTURE(name);
      CHECK((rates(with_other(config, name)) != rates(config)) == schedule.reads.contains(name));
    }
    CHECK((rates(config, 200) != rates(config, 100)) == schedule.spans_the_run);
  }
  for (const ScalingTraits& scaling : kScalings) {
    config.scaling = scaling.name;
    CAPTURE(scaling.name);
    const bool minds = scaling_factor(with_other(config, "base_batch"), 64) != scaling_factor(config, 64);
    CHECK(minds == scaling.reads.contains("base_batch"));
  }
}

}  // namespace echelon
