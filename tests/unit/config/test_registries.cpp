// SPDX-License-Identifier: Apache-2.0
// The words that keys permit are the names in the registries. Most come from one table of declarations
// (config/traits/); devices and bodies of update rules are on its level, so this test compares them with it.
#include <algorithm>
#include <catch2/catch.hpp>

#include "comm/codec/codec.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/collective/halves.hpp"
#include "comm/collective/hierarchical.hpp"
#include "config/keys.hpp"
#include "device/device.hpp"
#include "exchange/strategy.hpp"
#include "model/layers/list.hpp"
#include "model/zoo/zoo.hpp"
#include "optim/rules.hpp"
#include "optim/schedule.hpp"

namespace echelon {
namespace {

using Names = std::vector<std::string>;

Names words_of(const std::string& path) {
  for (const auto& key : config_keys())
    if (key.path() == path) return key.limits.words;
  for (const auto& key : layer_keys())
    if (key.path() == path) return key.limits.words;
  return {};
}

Names sorted(Names names) {
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("names in the config and in the registries agree", "[config]") {
  Names algorithms = allreduce_names();
  algorithms.push_back("auto");  // implemented in exchange/allreduce/autotune.hpp
  for (const AlgorithmTraits& algorithm : kAlgorithms)
    if (algorithm.on_devices) algorithms.emplace_back(algorithm.name);
  CHECK(sorted(words_of("exchange.algorithm")) == sorted(algorithms));
  CHECK(sorted(words_of("exchange.inner")) == sorted(halves_names()));
  CHECK(sorted(words_of("exchange.outer")) == sorted(outer_names()));
  Names codecs = codec_names();
  codecs.push_back("none");
  CHECK(sorted(words_of("exchange.codec")) == sorted(codecs));
  CHECK(sorted(words_of("exchange.strategy")) == sorted(strategy_names()));
  CHECK(sorted(words_of("model.zoo")) == sorted(zoo_names()));
  CHECK(sorted(words_of("device.kind")) == sorted(device_kinds()));
  CHECK(sorted(words_of("optimizer.rule")) == sorted(rule_names()));
  CHECK(sorted(words_of("optimizer.schedule")) == sorted(schedule_names()));
  CHECK(sorted(words_of("optimizer.scaling")) == sorted(scaling_names()));
  CHECK(sorted(words_of("model.layers.type")) == sorted(layer_types()));
}

}  // namespace echelon
