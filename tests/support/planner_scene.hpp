// SPDX-License-Identifier: Apache-2.0
// A small net under one strategy over 1 Gbit/s, for tests of predictions.
#pragma once

#include <string>

#include "model/build.hpp"
#include "model/zoo/zoo.hpp"
#include "planner/prediction.hpp"

namespace echelon::test {

inline Config config_of(const std::string& strategy) {
  Config config;
  config.model.zoo = "cnn_32_64";
  config.exchange.strategy = strategy;
  return config;
}

struct Scene {
  Config config;
  Graph graph = build_model(config.model, zoo_form("cnn_32_64"));
  Workload work = workload_of(config, graph);
  NetworkModel network = read_network("1gbit");
  StepModel step = described_step("forward_ms=20,backward_ms=40,optimizer_ms=2", 64);
  Pricers pricers{network, 1};

  explicit Scene(const std::string& strategy) : config(config_of(strategy)) {}
  ForecastRow row(int replicas, bool ranges = false) {
    ForecastRequest asked = request();
    asked.ranges = ranges;
    return forecast_row(asked, replicas);
  }
  ForecastRequest request() {
    return {.config = config,
            .work = work,
            .step = step,
            .strong = false,
            .network = network,
            .replicas = {2, 64, 1024},
            .pricers = pricers};
  }
};

}  // namespace echelon::test
