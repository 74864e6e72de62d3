// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/quantise.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "base/check.hpp"
#include "base/error.hpp"

namespace echelon::inline checkpoint {
namespace {

constexpr float kMost = 127;

// By type of layer: the number of its first parameters that are matrices (rows, ..) of products or tables.
const std::map<std::string_view, int> kMatrices = {{"conv", 1}, {"dense", 1}, {"embedding", 1},
                                                   {"rnn", 2},  {"lstm", 2},  {"gru", 2}};

// Returns the indices of these parameters, frozen ones included.
std::set<int> matrix_indices(const Graph& graph) {
  std::set<int> indices;
  for (const Node& node : graph.nodes()) {
    const auto found = kMatrices.find(node.layer->kind());
    for (int j = 0; found != kMatrices.end() && j < found->second; ++j)
      indices.insert(node.parameters[static_cast<std::size_t>(j)]);
  }
  return indices;
}

}  // namespace

QuantisedRows quantise_rows(std::span<const float> values, std::int64_t rows) {
  ECHELON_CHECK(rows > 0 && values.size() % static_cast<std::size_t>(rows) == 0, "{} values in {} rows", values.size(),
                rows);
  const std::size_t each = values.size() / static_cast<std::size_t>(rows);
  QuantisedRows quantised;
  quantised.values.reserve(values.size());
  for (auto row = values.begin(); row != values.end(); row += static_cast<std::ptrdiff_t>(each)) {
    float most = 0;
    for (const float value : std::span(row, each)) {
      if (!std::isfinite(value)) throw NumericError("weights that are inf or NaN have no 8-bit form");
      most = std::max(most, std::fabs(value));
    }
    const float scale = most / kMost > 0 ? most / kMost : 1;
    quantised.scales.push_back(scale);
    for (const float value : std::span(row, each)) {
      const double nearest = std::nearbyint(static_cast<double>(value) / static_cast<double>(scale));
      quantised.values.push_back(static_cast<std::int8_t>(std::clamp(nearest, -127.0, 127.0)));
    }
  }
  return quantised;
}

std::vector<std::string> matrices_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const int index : matrix_indices(graph)) names.push_back(graph.parameters()[index].name);
  return names;
}

WeightBytes quantise(Arenas& arenas, const Graph& graph) {
  WeightBytes bytes;
  for (const Parameter& parameter : arenas.parameters().with_frozen())
    bytes.plain += parameter.elems() * static_cast<std::int64_t>(size_of(arenas.dtype()));
  bytes.int8 = bytes.plain;
  with_float(arenas.dtype(), [&]<class T>(T) {
    for (const int index : matrix_indices(graph)) {
      const Tensor weight = arenas.weight(index);
      std::vector<T> values(static_cast<std::size_t>(weight.elems()));
      arenas.device().to_host(values.data(), weight.data, weight.bytes());
      const std::vector<float> narrow(values.begin(), values.end());
      const QuantisedRows rows = quantise_rows(narrow, weight.shape[0]);
      const std::size_t each = values.size() / rows.scales.size();
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<T>(static_cast<float>(rows.values[i]) * rows.scales[i / each]);
      arenas.device().to_device(weight.data, values.data(), weight.bytes());
      bytes.int8 += static_cast<std::int64_t>(values.size() + rows.scales.size() * sizeof(float)) -
                    static_cast<std::int64_t>(values.size() * sizeof(T));
    }
  });
  arenas.touch();
  return bytes;
}

}  // namespace echelon::inline checkpoint
