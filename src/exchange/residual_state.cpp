#include "exchange/residual_state.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace echelon::inline exchange {
StateTensor replica_row(std::string_view name, void* data, DType dtype, const Shape& shape, ReplicaPosition place) {
  StateTensor tensor;
  tensor.name = name;
  tensor.data = data;
  tensor.dtype = dtype;
  tensor.shape = shape.prepended(place.rank < place.ranks ? 1 : 0);
  tensor.placement = Placement::per_replica;
  tensor.global_shape = shape.prepended(place.ranks);
  tensor.offset = Shape(std::vector<std::int64_t>(static_cast<std::size_t>(shape.rank()), 0))
                      .prepended(std::min(place.rank, place.ranks));
  tensor.other_k = OtherK::sum_and_divide;
  return tensor;
}

void visit_residual(StateVisitor& visitor, std::string_view prefix, const ParameterSet& parameters, float* arena,
                    ReplicaPosition place) {
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.kind == ParameterKind::statistic) continue;
    const std::string name = fmt::format("{}/{}", prefix, parameter.name);
    StateTensor tensor = replica_row(name, arena + parameter.begin, DType::f32, parameter.shape, place);
    tensor.global_shape = parameter.global_shape.prepended(place.ranks);
    tensor.offset = parameter.offset.prepended(tensor.offset[0]);
    tensor.folded = parameter.folded < 0 ? -1 : parameter.folded + 1;
    visitor.tensor(tensor);
  }
}

void visit_whole(StateVisitor& visitor, std::string_view prefix, const ParameterSet& parameters, float* arena) {
  for (const Parameter& parameter : parameters.all()) {
    const std::string name = fmt::format("{}/{}", prefix, parameter.name);
    const bool slice = parameter.shape != parameter.global_shape;
    visitor.tensor({.name = name,
                    .data = arena + parameter.begin,
                    .dtype = DType::f32,
                    .shape = parameter.shape,
                    .placement = slice ? Placement::slice : Placement::replicated,
                    .global_shape = parameter.global_shape,
                    .offset = parameter.offset,
                    .folded = parameter.folded});
  }
}

void visit_by_replica(StateVisitor& visitor, std::string_view name, std::vector<double>& values, ReplicaPosition place,
                      OtherK other_k) {
  if (values.empty()) return;
  StateTensor tensor =
      replica_row(name, values.data(), DType::f64, Shape{static_cast<std::int64_t>(values.size())}, place);
  tensor.other_k = other_k;
  tensor.absent_is_zero = true;
  visitor.tensor(tensor);
}

}  // namespace echelon::inline exchange
