// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/weight_distance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.hpp"

namespace echelon::inline checkpoint {
namespace {

std::map<std::string, Shape> shapes_of(const WeightsFile& file) {
  std::map<std::string, Shape> shapes;
  for (const StoredTensor& tensor : file.tensors()) shapes.emplace(tensor.name, tensor.shape);
  return shapes;
}

void require_all_of(const WeightsFile& file, const WeightsFile& in) {
  const std::map<std::string, Shape> shapes = shapes_of(in);
  for (const StoredTensor& tensor : file.tensors()) {
    const auto found = shapes.find(tensor.name);
    if (found == shapes.end())
      throw ConfigError(fmt::format("{} has a tensor '{}' {}, which {} does not have: they belong to different models",
                                    file.path(), tensor.name, tensor.shape.text(), in.path()));
    if (!(found->second == tensor.shape))
      throw ConfigError(fmt::format("'{}' is {} in {} and {} in {}: they belong to different models", tensor.name,
                                    tensor.shape.text(), file.path(), found->second.text(), in.path()));
  }
}

double difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double apart = std::abs(a - b);
  return std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart;
}

}  // namespace

double TensorDistance::relative() const { return largest == 0 ? 0 : largest / largest_base; }

std::vector<TensorDistance> weight_distances(const WeightsFile& base, const WeightsFile& other) {
  require_all_of(base, other);
  require_all_of(other, base);
  std::vector<TensorDistance> distances;
  std::vector<double> b, a;
  for (const StoredTensor& tensor : base.tensors()) {
    TensorDistance distance{.name = tensor.name, .values = tensor.shape.elems()};
    b.resize(static_cast<std::size_t>(distance.values));
    a.resize(b.size());
    base.read(tensor, b.data(), DType::f64);
    other.read(tensor, a.data(), DType::f64);
    double squares = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
      const double apart = difference(a[i], b[i]);
      distance.largest = std::max(distance.largest, apart);
      squares += apart * apart;
      if (std::isfinite(b[i])) distance.largest_base = std::max(distance.largest_base, std::abs(b[i]));
    }
    if (!b.empty()) distance.root_mean_square = std::sqrt(squares / static_cast<double>(b.size()));
    distances.push_back(std::move(distance));
  }
  return distances;
}

}  // namespace echelon::inline checkpoint
