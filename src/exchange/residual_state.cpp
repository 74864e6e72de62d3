#include "exchange/residual_state.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/collective/plan.hpp"

namespace echelon {
namespace {

// This replica's row of all replicas' tensor; none where the rank is beyond them.
void show(StateVisitor& visitor, std::string_view name, void* data, DType dtype, std::int64_t elems, ReplicaPlace place,
          OtherK other_k = OtherK::sum_and_divide) {
  visitor.tensor({.name = name,
                  .data = data,
                  .dtype = dtype,
                  .shape = {place.rank < place.ranks ? 1 : 0, elems},
                  .placement = Placement::per_replica,
                  .global_shape = {place.ranks, elems},
                  .offset = {std::min(place.rank, place.ranks), 0},
                  .other_k = other_k});
}

}  // namespace

void visit_residual(StateVisitor& visitor, std::string_view prefix, const ParameterSet& parameters, float* arena,
                    ReplicaPlace place) {
  for (const Parameter& parameter : parameters.all())
    if (parameter.kind != ParameterKind::statistic)
      show(visitor, fmt::format("{}/{}", prefix, parameter.name), arena + parameter.begin, DType::f32,
           parameter.elems(), place);
}

void visit_owned(StateVisitor& visitor, std::string_view prefix, const std::vector<ArenaRange>& buckets, float* arena,
                 ReplicaPlace place) {
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const ElemRange own = even_part(buckets[b].elems(), place.ranks, place.rank);
    visitor.tensor({.name = fmt::format("{}/{}", prefix, b),
                    .data = arena + buckets[b].begin + own.begin,
                    .dtype = DType::f32,
                    .shape = {own.elems()},
                    .placement = Placement::slice,
                    .global_shape = {buckets[b].elems()},
                    .offset = {own.begin},
                    .other_k = OtherK::refuse});
  }
}

void visit_whole(StateVisitor& visitor, std::string_view prefix, const ParameterSet& parameters, float* arena) {
  for (const Parameter& parameter : parameters.all()) {
    const std::string name = fmt::format("{}/{}", prefix, parameter.name);
    visitor.tensor({.name = name,
                    .data = arena + parameter.begin,
                    .dtype = DType::f32,
                    .shape = parameter.shape,
                    .global_shape = {},
                    .offset = {}});
  }
}

void visit_by_replica(StateVisitor& visitor, std::string_view name, std::vector<double>& values, ReplicaPlace place,
                      OtherK other_k) {
  if (values.empty()) return;
  show(visitor, name, values.data(), DType::f64, static_cast<std::int64_t>(values.size()), place, other_k);
}

}  // namespace echelon
