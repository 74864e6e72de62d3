// SPDX-License-Identifier: Apache-2.0
#include "exchange/residual_state.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace echelon::inline exchange {
namespace {

// Returns this replica's row of a tensor of shape (replicas, shape); an empty part if the rank has no row.
StateTensor replica_row(std::string_view name, void* data, DType dtype, const Shape& shape, ReplicaPosition position) {
  StateTensor tensor;
  tensor.name = name;
  tensor.data = data;
  tensor.dtype = dtype;
  tensor.shape = shape.prepended(position.rank < position.ranks ? 1 : 0);
  tensor.placement = Placement::per_replica;
  tensor.global_shape = shape.prepended(position.ranks);
  tensor.offset = Shape(std::vector<std::int64_t>(static_cast<std::size_t>(shape.rank()), 0))
                      .prepended(std::min(position.rank, position.ranks));
  tensor.other_k = OtherK::sum_and_divide;
  return tensor;
}

}  // namespace

StateTensor replica_tensor(std::string_view name, void* data, DType dtype, const Parameter& parameter,
                           ReplicaPosition position) {
  StateTensor tensor = replica_row(name, data, dtype, parameter.shape, position);
  tensor.global_shape = parameter.global_shape.prepended(position.ranks);
  tensor.offset = parameter.offset.prepended(tensor.offset[0]);
  tensor.folded = parameter.folded < 0 ? -1 : parameter.folded + 1;
  return tensor;
}

void visit_whole(StateVisitor& visitor, std::string_view prefix, const ParameterSet& parameters, float* arena) {
  for (const Parameter& parameter : parameters.all()) {
    const std::string name = fmt::format("{}/{}", prefix, parameter.name);
    visitor.tensor(whole_tensor(name, arena + parameter.begin, DType::f32, parameter));
  }
}

void visit_by_replica(StateVisitor& visitor, std::string_view name, std::vector<double>& values,
                      ReplicaPosition position, OtherK other_k) {
  if (values.empty()) return;
  StateTensor tensor =
      replica_row(name, values.data(), DType::f64, Shape{static_cast<std::int64_t>(values.size())}, position);
  tensor.other_k = other_k;
  tensor.absent_is_zero = true;
  visitor.tensor(tensor);
}

void visit_taus(StateVisitor& visitor, std::string_view name, const std::vector<Codec*>& codecs,
                ReplicaPosition position) {
  std::vector<double> taus;
  for (const Codec* codec : codecs) taus.push_back(codec ? codec->tau() : 0);
  visit_by_replica(visitor, name, taus, position, OtherK::reset);
  for (std::size_t i = 0; i < codecs.size() && visitor.loading(); ++i)
    if (codecs[i]) codecs[i]->set_tau(taus[i]);
}

}  // namespace echelon::inline exchange
