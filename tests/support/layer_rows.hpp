// SPDX-License-Identifier: Apache-2.0
// Small graphs that together hold every layer, for suites that test each layer.
#pragma once

#include <string>
#include <vector>

#include "model/build.hpp"

namespace echelon::test {

inline constexpr std::int64_t kClasses = 4;

struct LayerRow {
  std::string name;
  SampleForm form;
  std::vector<LayerConfig> layers;  // a head (flatten, dense) follows unless the last layer is dense
  std::string loss = "auto";
};

std::vector<LayerRow> layer_rows();
Graph graph_of(const LayerRow& row);

}  // namespace echelon::test
