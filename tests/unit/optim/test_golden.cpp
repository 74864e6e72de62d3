// SPDX-License-Identifier: Apache-2.0
// Compares every rule over several updates with PyTorch's optimisers, from the same weights and gradients.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "optim/optimiser.hpp"
#include "tests/unit/optim/golden_optimisers.hpp"

using namespace echelon;

namespace {

constexpr int kElems = 15;

// Returns the config of this name in tests/tools/golden_optimisers.py.
OptimiserConfig config_of(const std::string& name) {
  OptimiserConfig config;
  config.rule = name.substr(0, name.find('_'));
  config.momentum = 0.75;
  config.weight_decay = 0.1;
  config.learning_rate = 0.05;
  config.beta1 = 0.8;
  config.beta2 = 0.95;
  config.alpha = 0.9;
  config.epsilon = 1e-6;
  if (name == "nesterov") config.rule = "sgd", config.nesterov = true;
  if (config.rule == "sgd") config.learning_rate = 0.1, config.weight_decay = 0.05;
  if (config.rule == "rmsprop") config.learning_rate = 0.02, config.momentum = name == "rmsprop" ? 0 : 0.5;
  if (config.rule == "lars") config.learning_rate = 2, config.weight_decay = 0.05, config.trust_coefficient = 0.02;
  if (name.ends_with("clipped")) config.clip_norm = 0.5;
  if (name == "adam_clipped") config.weight_decay = 0;
  return config;
}

ParameterSet parameters() {
  ParameterSet set;
  set.add("a", Shape{7}, {});
  set.add("b", Shape{3}, {}, false);
  set.add("c", Shape{5}, {});
  return set;
}

// Returns the weights after the updates. Initial weights and gradients are exact in binary.
template <class T>
std::vector<double> trained(const OptimiserConfig& config, Device& device, DType dtype) {
  Arenas arenas(device, parameters(), dtype);
  Optimiser optimiser(config, arenas);
  std::vector<T> w(kElems), g(kElems);
  for (int i = 0; i < kElems; ++i) w[static_cast<std::size_t>(i)] = static_cast<T>((7 * i + 3) % 11 - 5) / 8;
  device.to_device(arenas.weights_at(0), w.data(), w.size() * sizeof(T));
  for (int step = 0; step < golden::kSteps; ++step) {
    for (int i = 0; i < kElems; ++i)
      g[static_cast<std::size_t>(i)] = static_cast<T>((5 * i + 3 * step + 1) % 13 - 6) / 16;
    device.to_device(arenas.gradients_at(0), g.data(), g.size() * sizeof(T));
    optimiser.begin_step(step, config.learning_rate);
    if (optimiser.clips()) optimiser.clip(optimiser.measure({0, kElems}));
    for (const ArenaRange range : {ArenaRange{7, 15}, ArenaRange{0, 7}}) optimiser.apply(range);
  }
  device.to_host(w.data(), arenas.weights_at(0), w.size() * sizeof(T));
  return {w.begin(), w.end()};
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < b.size(); ++i) most = std::max(most, std::fabs(a[i] - b[i]));
  return most;
}

}  // namespace

TEST_CASE("rules agree with PyTorch over several updates", "[optim]") {
  for (const golden::OptimiserCase& golden : golden::kOptimisers) DYNAMIC_SECTION(golden.name) {
      const OptimiserConfig config = config_of(golden.name);
      REQUIRE(golden.weights.size() == kElems);
      const auto reference = open_device("reference", {}), fast = open_device("onednn", {});
      CHECK(distance(trained<double>(config, *reference, DType::f64), golden.weights) < 1e-14);
      CHECK(distance(trained<float>(config, *reference, DType::f32), golden.weights) < 1e-6);
      CHECK(distance(trained<float>(config, *fast, DType::f32), golden.weights) < 1e-6);
    }
}
